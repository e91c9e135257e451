"""Puts what the ConfigMaps deliver where it belongs in /project."""

import json
import pathlib
import shutil

delivered, project = pathlib.Path("/delivered"), pathlib.Path("/project")
files = {path: path.name for path in delivered.glob("config/*") if not path.name.startswith(".")}
paths = delivered / "code" / ".paths.json"
if paths.exists():
    files |= {paths.with_name(key): path for key, path in json.loads(paths.read_text()).items()}
for source, path in files.items():
    if not source.exists():  # another pod's
        continue
    target = project / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
