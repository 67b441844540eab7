#!/usr/bin/env python3
"""Writes a wheel of a build, without the libraries that it needs, and prints its path; tools/wheel.sh calls it.

  pack.py --build build/release --work build/wheel

Into the folder `libraries` of the work folder it puts Debian's libdnnl without its need of OpenCL: auditwheel takes it
from there. Also adds the licences of Debian's packages that auditwheel takes libraries from.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("*.py", "*.pyi", "*.tsv", "py.typed")
NO_GPU = "libno_gpu.so.1"
# Libraries of every Linux, which wheels do not contain.
OF_THE_SYSTEM = re.compile(r"ld-linux.*|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|z)\.so\.\d+|linux-vdso.*")
NO_PLATFORM = -1001  # what clGetPlatformIDs returns if there is none: CL_PLATFORM_NOT_FOUND_KHR


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def stage(build, folder, tag):
    """Copies the package into the folder: sources, the module, the command."""
    for pattern in SOURCES:
        for source in (ROOT / "python" / "penstock").rglob(pattern):
            target = folder / source.relative_to(ROOT / "python")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    output("cmake", "--install", build, "--component", "python", "--prefix", folder, "--strip")
    if tag:
        for module in folder.glob("penstock/_penstock*.so"):
            module.unlink()
        (module,) = (build / "python" / tag).glob("_penstock*.so")
        output("strip", "--strip-unneeded", module, "-o", folder / "penstock" / module.name)
    if not (folder / "penstock/bin/penstock").exists():
        sys.exit(f"pack.py: {build} has no command penstock")


def metadata(folder):
    """Adds METADATA, WHEEL, entry points and licence, as pyproject.toml has them. Returns their folder."""
    from scikit_build_core.build import prepare_metadata_for_build_wheel

    os.chdir(ROOT)
    return folder / prepare_metadata_for_build_wheel(str(folder))


def needed(binaries):
    """Returns {name: path} of the libraries that a wheel must contain."""
    found = {}
    for binary in binaries:
        for name, path in re.findall(r"^\s*(\S+) => (\S+)", output("ldd", binary), re.MULTILINE):
            if not OF_THE_SYSTEM.fullmatch(name):
                found[name] = path
    return found


def add_licences(libraries, folder):
    """Copies the licences of the Debian packages of the libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(libraries.values()):
        real = os.path.realpath(path)
        owner = next(
            (
                done.stdout.partition(":")[0]
                for one in (real, real.removeprefix("/usr"), "/usr" + real)
                if not (done := subprocess.run(["dpkg", "-S", one], capture_output=True, text=True)).returncode
            ),
            None,
        )
        licence = pathlib.Path("/usr/share/doc") / str(owner) / "copyright"
        if not licence.exists():
            sys.exit(f"pack.py: {path}: no Debian package with a licence has it")
        shutil.copyfile(licence, folder / f"{owner}.txt")


def without_opencl(dnnl, folder):
    """Copies oneDNN, whose GPU engine Penstock does not use, with a library in OpenCL's place that finds no GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "libdnnl.so.2"
    shutil.copyfile(os.path.realpath(dnnl), copy)
    symbols = re.findall(r" U (cl[A-Z]\w*)@(OPENCL_[\d.]+)$", output("nm", "-D", "--with-symbol-versions", copy), re.M)
    if not symbols:
        return
    source, versions = folder / "no_gpu.c", folder / "no_gpu.map"
    source.write_text(
        "".join(
            f"long {name}(void) {{ return {NO_PLATFORM if name == 'clGetPlatformIDs' else 0}; }}\n"
            for name, _ in symbols
        )
    )
    by_version, text, before = {}, "", ""
    for name, version in symbols:
        by_version.setdefault(version, []).append(name)
    for version in sorted(by_version):
        text += f"{version} {{ global: {'; '.join(by_version[version])}; }} {before};\n"
        before = version
    versions.write_text(text)
    output(
        "cc", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{NO_GPU}", f"-Wl,--version-script={versions}", source,
        "-o", folder / NO_GPU,
    )  # fmt: skip
    output("patchelf", "--replace-needed", "libOpenCL.so.1", NO_GPU, copy)


def write(folder, info, target):
    """Writes the wheel with its RECORD, the same bytes for the same contents."""
    record, when = [], (2026, 1, 1, 0, 0, 0)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path != info / "RECORD")
        for path in [
            *(one for one in files if info not in one.parents),
            *(one for one in files if info in one.parents),
        ]:
            name, data = path.relative_to(folder).as_posix(), path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            _add(archive, name, data, when, path.stat().st_mode & 0o111)
        name = f"{info.name}/RECORD"
        _add(archive, name, "".join([*record, f"{name},,\n"]).encode(), when, 0)


def _add(archive, name, data, when, runs):
    entry = zipfile.ZipInfo(name, when)
    entry.external_attr = (0o100755 if runs else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=lambda given: pathlib.Path(given).resolve())
    parser.add_argument("--work", required=True, type=lambda given: pathlib.Path(given).resolve())
    parser.add_argument(
        "--tag", help="of another Python than this one, such as cp312; its module is in BUILD/python/TAG"
    )
    options = parser.parse_args()
    folder = options.work / "raw" / "contents"
    folder.mkdir(parents=True)
    stage(options.build, folder, options.tag)
    info = metadata(folder)
    facts = (info / "WHEEL").read_text()
    if options.tag:
        facts = re.sub(r"(?m)^Tag: cp\d+-cp\d+-", f"Tag: {options.tag}-{options.tag}-", facts)
        (info / "WHEEL").write_text(facts)
    tag = re.search(r"(?m)^Tag: (\S+)$", facts)[1]
    libraries = needed([*folder.glob("penstock/_penstock*.so"), folder / "penstock/bin/penstock"])
    libraries.pop("libOpenCL.so.1", None)
    add_licences(libraries, info / "licenses" / "libraries")
    without_opencl(libraries["libdnnl.so.2"], options.work / "libraries")
    target = options.work / "raw" / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    write(folder, info, target)
    print(target)


if __name__ == "__main__":
    main()
