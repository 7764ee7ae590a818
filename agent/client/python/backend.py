# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel and an sdist of the module with the standard library alone (the hooks of PEP 517)."""
import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _project():
    """The keys of pyproject.toml that have a string."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return dict(re.findall(r'^([a-z-]+) = "(.*)"$', f.read(), re.M))


def _metadata(project):
    return ("Metadata-Version: 2.1\nName: %(name)s\nVersion: %(version)s\nSummary: %(description)s\n"
            "License: Apache-2.0\nRequires-Python: %(requires-python)s\n" % project).encode()


def _module():
    """(name, bytes) of each file of the module."""
    for name in sorted(os.listdir(os.path.join(HERE, "lockstep"))):
        if name.endswith((".py", ".def")):
            with open(os.path.join(HERE, "lockstep", name), "rb") as f:
                yield "lockstep/" + name, f.read()


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    name = "%(name)s-%(version)s" % project
    info = name + ".dist-info/"
    files = [*_module(), (info + "METADATA", _metadata(project)),
             (info + "WHEEL", b"Wheel-Version: 1.0\nGenerator: lockstep\nRoot-Is-Purelib: true\nTag: py3-none-any\n")]
    record = "".join("%s,sha256=%s,%d\n" % (path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(),
                                            len(data)) for path, data in files) + info + "RECORD,,\n"
    wheel = name + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for path, data in [*files, (info + "RECORD", record.encode())]:
            z.writestr(zipfile.ZipInfo(path), data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    name = "%(name)s-%(version)s" % project
    files = [*_module(), ("PKG-INFO", _metadata(project))]
    for path in ("pyproject.toml", "backend.py"):
        with open(os.path.join(HERE, path), "rb") as f:
            files.append((path, f.read()))
    sdist = name + ".tar.gz"
    with tarfile.open(os.path.join(sdist_directory, sdist), "w:gz") as t:
        for path, data in files:
            member = tarfile.TarInfo(name + "/" + path)
            member.size = len(data)
            t.addfile(member, io.BytesIO(data))
    return sdist
