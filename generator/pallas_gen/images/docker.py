"""Command lines of docker and of the tools that put an image into a cluster of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cluster = Literal["kind", "minikube", "k3d"]
CLUSTERS: tuple[Cluster, ...] = ("kind", "minikube", "k3d")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Build:
    """One image to build."""

    image: str
    dockerfile: str
    """Path of its Dockerfile."""
    folder: str
    """The build's context."""
    version: str
    python: str = ""
    """Image that it is to be built from, where that is not what its Dockerfile says."""


BASE_LABEL = "org.opencontainers.image.base.name"
"""Label in which an image of the kit has the `python` that it was built from."""


def build(image: Build, options: tuple[str, ...] = ()) -> list[str]:
    """Return the command that builds an image into the local engine; `options` are secrets and proxies."""
    command = ["docker", "buildx", "build", "--load", "--file", image.dockerfile, "--tag", image.image]
    command += ["--build-arg", f"VERSION={image.version}"]
    if image.python:
        command += ["--build-arg", f"PYTHON={image.python}"]
    return [*command, *options, image.folder]


def export(dockerfile: str, folder: str, output: str, options: tuple[str, ...] = ()) -> list[str]:
    """Return the command that builds anew in `folder` and writes the files of the result to the folder `output`."""
    command = ["docker", "buildx", "build", "--no-cache", "--file", dockerfile, "--output", f"type=local,dest={output}"]
    return [*command, *options, folder]


def push(image: str) -> list[str]:
    """Return the command that pushes an image to the registry in its name."""
    return ["docker", "push", "--quiet", image]


def load(image: str, cluster: Cluster) -> list[str]:
    """Return the command that copies an image of the local engine to the nodes of a cluster.

    Which cluster it is, these tools take from KIND_CLUSTER_NAME and MINIKUBE_PROFILE, and from k3d's default name.
    """
    commands = {
        "kind": ["kind", "load", "docker-image", image],
        "minikube": ["minikube", "image", "load", image],
        "k3d": ["k3d", "image", "import", image],
    }
    return commands[cluster]


def inspect(image: str) -> list[str]:
    """Return the command that prints an image's labels as JSON, and fails when it is not in the local engine."""
    return ["docker", "image", "inspect", "--format", "{{json .Config.Labels}}", image]
