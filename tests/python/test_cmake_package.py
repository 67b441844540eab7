"""An installed Penstock is a CMake package: a project outside the tree links it and runs a program. If the build lacks
libraries, the error lists the names of Debian's packages."""

import pathlib
import subprocess

import penstock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(penstock._penstock.__file__).resolve().parents[2]
LIMIT_S = 600


def run(*command, cwd=None):
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_project_links_an_installed_penstock_and_runs_a_program(tmp_path):
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    run("cmake", "--install", BUILD, "--component", "development", "--prefix", prefix)
    run(
        "cmake",
        "-S",
        ROOT / "tests" / "install" / "example",
        "-B",
        build,
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    )
    run("cmake", "--build", build)
    assert run(build / "run_program").split() == ["3", "-4"]
    headers = prefix / "include" / "penstock"
    assert not list(headers.rglob("*.cc")) and (headers / "framework" / "ir" / "program.h").exists()


def test_missing_build_dependencies_are_reported_together(tmp_path):
    done = subprocess.run(
        [
            "cmake",
            "-S",
            ROOT,
            "-B",
            tmp_path,
            "-DPENSTOCK_CUDA=OFF",
            "-DCMAKE_DISABLE_FIND_PACKAGE_gRPC=ON",
            "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON",
        ],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode != 0
    assert "apt-get install libgrpc++-dev nlohmann-json3-dev" in " ".join(done.stderr.split())
