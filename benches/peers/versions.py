"""Prints the installed version of each package named, or null, as one JSON object."""

import importlib.metadata
import json
import platform
import sys


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


print(json.dumps({"python": platform.python_version()} | {package: version(package) for package in sys.argv[1:]}))
