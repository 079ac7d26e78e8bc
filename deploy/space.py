"""Deploy the app as a Space: python deploy/space.py OWNER/NAME [--hardware zero-a10g] [--options="--model gpt2"]

Creates the Space if necessary, sets its options, and uploads the app's files in one commit. Log in with `hf auth login`
first, or set HF_TOKEN.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, SpaceHardware, Volume
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars, filter_repo_objects

ROOT = Path(__file__).parent.parent
FILES = ["app.py", "requirements.txt", "README.md", "LICENSE", "gpt/**/*", "components/**/*"]
NOT_FILES = ["*__pycache__*", "*.pyc", "*.pyi", "*/.*"]
MAX_FILE_BYTES = 10_000_000  # larger files need a different kind of storage on the hub
STORAGE = "/data"  # mount point of a bucket
# The bases of HfHubHTTPError include the errors of its HTTP library.
NETWORK_ERRORS = (OSError, *HfHubHTTPError.__bases__)


def main() -> int:
    """Deploy the app. Print an error and return 1 if that fails."""
    arguments = parse_arguments()
    try:
        url = deploy(arguments)
    except (HFValidationError, ValueError) as problem:
        return refuse(str(problem))
    except LocalTokenNotFoundError:
        return refuse("no token found: log in with `hf auth login`, or set HF_TOKEN")
    except RepositoryNotFoundError:
        return refuse(f"{arguments.repo_id} doesn't exist, or the token has no access to it")
    except HfHubHTTPError as problem:
        return refuse(reason(problem, arguments.repo_id))
    except NETWORK_ERRORS as problem:
        return refuse(f"the hub is unreachable: {problem}")
    print(f"Deployed to {url}. The Space is now building.")
    return 0


def deploy(arguments: argparse.Namespace) -> str:
    """Create the Space if necessary, set its options, upload the app, and return the Space's address.

    Sets options first, because each change restarts a running Space.
    """
    names = files_of_app()
    api, repo_id = HfApi(), arguments.repo_id
    api.whoami()  # reports an invalid token before anything is changed
    url = api.create_repo(
        repo_id, repo_type="space", space_sdk="gradio", private=arguments.private or None, exist_ok=True
    )
    variables = dict(arguments.variable)
    if arguments.options is not None:
        variables["GLASSBOX_OPTIONS"] = arguments.options
    if arguments.bucket:
        api.set_space_volumes(repo_id, [Volume(type="bucket", source=arguments.bucket, mount_path=STORAGE)])
        variables["HF_HOME"] = f"{STORAGE}/huggingface"
    for name, value in variables.items():
        api.add_space_variable(repo_id, name, value)
    for name in arguments.secret:
        api.add_space_secret(repo_id, name, os.environ[name])
    if arguments.hardware:
        api.request_space_hardware(repo_id, arguments.hardware)
    there = {file for file in api.list_repo_files(repo_id, repo_type="space") if file != ".gitattributes"}
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        *(CommitOperationAdd(name, ROOT / name) for name in names),
        *(CommitOperationDelete(name) for name in sorted(there.difference(names))),
    ]
    # upload_folder would split many files into several commits, and the Space would build each of them.
    api.create_commit(repo_id, operations, repo_type="space", commit_message=arguments.message)
    return str(url)


def files_of_app() -> list[str]:
    """Return the paths of the app's files, relative to the repository. Raise ValueError if a file is too large."""
    paths = (path for top in FILES for path in ROOT.glob(top) if path.is_file())
    names = sorted(
        filter_repo_objects((path.relative_to(ROOT).as_posix() for path in paths), ignore_patterns=NOT_FILES)
    )
    for name in names:
        if (size := (ROOT / name).stat().st_size) > MAX_FILE_BYTES:
            raise ValueError(f"{name} has {size:,} bytes, but the limit is {MAX_FILE_BYTES:,}")
    return names


def reason(problem: HfHubHTTPError, repo_id: str) -> str:
    """Return a sentence that explains why the hub refused the request."""
    status = problem.response.status_code
    if status == 401:
        return "the hub rejected the token: log in again with `hf auth login`, or set HF_TOKEN"
    if status == 403:
        return f"the token has no write access to {repo_id}: it needs the role write"
    said = problem.server_message or problem.response.reason_phrase
    return f"the hub answered with status {status}: {said}"


def refuse(sentence: str) -> int:
    print(f"The Space could not be deployed: {sentence}", file=sys.stderr)
    return 1


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Deploy the app as a Space on the Hugging Face hub.")
    parser.add_argument("repo_id", metavar="OWNER/NAME")
    parser.add_argument("--private", action="store_true", help="let only the owner open a new Space")
    parser.add_argument(
        "--hardware",
        choices=[each.value for each in SpaceHardware],
        help="hardware of the Space, such as zero-a10g for ZeroGPU (cpu-basic for a new Space)",
        metavar="NAME",
    )
    parser.add_argument(
        "--options", metavar="TEXT", help='options of app.py, such as --options="--model gpt2 --precision int8"'
    )
    bucket_help = f"keep downloaded models in this bucket, which is mounted at {STORAGE}"
    parser.add_argument("--bucket", metavar="OWNER/NAME", help=bucket_help)
    parser.add_argument(
        "--variable", nargs="+", type=variable, default=[], metavar="NAME=VALUE", help="environment variables"
    )
    secret_help = "hidden environment variables; their values are taken from this environment"
    parser.add_argument("--secret", nargs="+", type=secret, default=[], metavar="NAME", help=secret_help)
    parser.add_argument("--message", default="Deploy", help="commit message (Deploy)")
    return parser.parse_args()


def variable(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def secret(name: str) -> str:
    """Return the name of an environment variable after checking that it is set."""
    if name not in os.environ:
        raise argparse.ArgumentTypeError(f"{name} is not set in this environment")
    return name


if __name__ == "__main__":
    disable_progress_bars()
    sys.exit(main())
