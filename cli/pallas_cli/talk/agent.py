"""The agent that was named -> its MCP endpoint: a URL as it is, a name by the registry or through the cluster's API."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from pallas_cli.running import kubernetes, locate, status
from pallas_cli.running.catalogue import Member
from pallas_cli.running.locate import Registry
from pallas_cli.trouble import Trouble
from pallas_contract import names
from pallas_contract.codes import Code
from pallas_contract.problems import Problem, Refused, Where, printable

_EXAMPLE = "http://127.0.0.1:24201/mcp"


@contextmanager
def endpoint(options: Namespace) -> Iterator[str]:
    """Yield the URL of `options.agent`.

    Raises:
        Refused: there is no agent of that name, it publishes no address, or the URL is none.
        Trouble: no registry answers, or no way leads into the cluster.
    """
    if options.agent.startswith(("http://", "https://")):
        locate.http_url(options.agent, "AGENT", _EXAMPLE)
        yield options.agent
    elif options.namespace and not options.registry:
        with kubernetes.forwarded(options.namespace, options.agent) as url:
            yield f"{url}{names.MCP_PATH}"
    else:
        with locate.registry(options) as registry:
            member = _listed(options.agent, registry)
            try:
                yield member.url
            except Trouble as trouble:  # whoever asked the registry first knows more than that nobody answers
                if member.status in status.WELL:
                    raise
                known = printable(": ".join(filter(None, (member.status, member.message))))
                raise Trouble(f"{trouble}\n    the registry has it as {known}; `pallas logs` may say why") from None


def _listed(agent: str, registry: Registry) -> Member:
    agents = {member.name: member for member in locate.members(registry) if member.kind == "agent"}
    member = agents.get(names.slug(agent))
    if member is None:
        close = get_close_matches(names.slug(agent), agents, n=1)
        hint = f"did you mean `{close[0]}`?" if close else f"the registry has {', '.join(sorted(agents)) or 'none'}"
        raise Refused(
            [
                Problem(
                    Where(agent),
                    f"the registry at {registry.url} has no agent of this name",
                    hint,
                    code=Code.NO_SUCH_AGENT,
                )
            ]
        )
    if not member.url:
        hint = (
            "publish it (`publish: true` in agents.yaml; with replicas `public_url` too), or ask an agent that calls it"
        )
        raise Refused([Problem(Where(agent), "publishes no address", hint, code=Code.NO_ADDRESS)])
    locate.http_url(member.url, agent, _EXAMPLE)
    return member
