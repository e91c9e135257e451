"""The one script that stands in the pages themselves: it loads a page anew where a file of it did not come.

A browser gives up what it waits for a connection for while the machine's network changes: a laptop that comes to
another network, Docker that starts a container beside a local fleet. Without its script a page would go on showing
what held when it was loaded, with nothing on it that works.
"""

from __future__ import annotations

import base64
import hashlib

SECONDS = 3
"""Until the page is loaded anew: long enough for a server that was asked too much. Twice as long each time after."""
TIMES = 5
"""Then it stays as it is, until it is loaded by hand: what somebody's browser blocks never comes."""
KEY = "pallas-loaded-anew"
"""Where the browser counts that, for a tab. One that keeps nothing loads nothing anew."""
SCRIPT = (
    "{let lost=false;"
    'addEventListener("error",(event)=>{if(lost||!event.target.matches?.("script,link[rel=stylesheet]"))return;'
    f'lost=true;const times=Number(sessionStorage.getItem("{KEY}"));if(times<{TIMES}){{'
    f'sessionStorage.setItem("{KEY}",times+1);setTimeout(()=>location.reload(),{SECONDS * 1000}*2**times)}}}},true);'
    f'addEventListener("load",()=>{{if(!lost)sessionStorage.removeItem("{KEY}")}})}}'
)
"""Errors of scripts that ran have the window for their target, which matches nothing."""
ELEMENT = f"<script>{SCRIPT}</script>"
"""It comes before whatever the page loads."""
SOURCE = f"'sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}'"
"""What a content security policy lets run by it: this text, and no other."""
