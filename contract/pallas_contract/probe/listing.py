"""Whether a server that shook hands lets its tools and prompts be listed, which is what its clients come for.

Many let anybody shake hands, and ask for a token, or a database, no sooner than here.
"""

from __future__ import annotations

from dataclasses import replace

from pallas_contract.documents.reason import Reason
from pallas_contract.probe import http_client
from pallas_contract.probe.http_connection import COMPRESSED
from pallas_contract.probe.session import Bound, ProbeEnded, Session, as_object, rpc_error


async def refusal(session: Session, era: str, bound: Bound) -> ProbeEnded | None:
    """Return why the lists that a server says it has cannot be had, with the `method`; None where they can.

    `era` is empty in the handshake era. Only the first page of each is asked for.
    """
    seconds = session.target.lists
    # clients take null for none, as some serializers write it
    kinds = [kind for kind in ("tools", "prompts") if session.capabilities.get(kind) is not None]
    if not kinds:
        return None
    method = f"{kinds[0]}/list"
    try:
        async with bound(seconds):
            if not era:  # before this a server may refuse any other request (Lifecycle)
                await session.notify("notifications/initialized")
            for kind in kinds:
                method = f"{kind}/list"
                await _list(session, kind, era)
    except ProbeEnded as error:
        ended = error
    except TimeoutError:
        ended = ProbeEnded("error", Reason("NoAnswer", f"no answer in {seconds:g} s"))
    except http_client.Unreachable as error:
        if error.reason.code == "AnswerTooLarge" or error.reason == COMPRESSED:
            return None  # a list that clients read and probes do not
        ended = ProbeEnded("error", error.reason)
    else:
        return None
    if ended.status == 429:
        return None  # asked to slow down: by the probes, as likely as not
    ended.method = method
    ended.reason = replace(ended.reason, message=f"{method}: {ended.reason.message}")
    return ended


async def _list(session: Session, kind: str, era: str) -> None:
    response = await session.post(f"{kind}/list", {}, era=era)
    answer = session.answer(response)
    if isinstance(as_object(answer.get("result")).get(kind), list):
        return
    if response.status >= 400 and not answer:
        raise ProbeEnded("error", Reason("HttpError", f"HTTP {response.status}"))
    raise ProbeEnded("error", rpc_error(answer))
