"""Each micro-kernel's object has instructions of its own instruction set alone.

usage: instruction_sets_test.py BUILD_FOLDER

A processor without AMX or AVX-512 runs the same program as one that has them:
what only some processors know may stand only in files that are selected by the
processor. AVX2 is every build's (docs/adr/2026-11-21-cpu-baseline.md).
Disassembles the objects of engine/runtime/ukernels as they are in the build
folder. Ends with 77 where there are none, or for another processor.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys

# What an instruction is known by, and the suffixes of files that may have it.
MARKS = {
    "AMX": (re.compile(r"%tmm\d|\t(ldtilecfg|sttilecfg|tilerelease|tilezero)"),
            {"amx_int8"}),
    "AVX-512": (re.compile(r"%zmm\d|%k[1-7]\b"),
                {"avx512", "avx512_vnni", "amx_int8"}),
    "products of VNNI": (re.compile(r"\tvpdpbusd"),
                         {"avx512_vnni", "avx_vnni", "amx_int8"}),
}
# What an AMX kernel cannot do without.
AMX = ["ldtilecfg", "tilerelease", "tileloadd", "tilestored", "tdpbusd"]


def suffix_of(name, suffixes):
    fitting = [s for s in suffixes if name.endswith("_" + s)]
    return max(fitting, key=len, default="")


def main(build):
    objdump = shutil.which("objdump")
    source = pathlib.Path(__file__).resolve().parents[2]
    folder = source / "engine/runtime/ukernels"
    rows = [line.split() for line in
            (folder / "instruction_sets.txt").read_text().splitlines()
            if re.match("[a-z]", line)]
    suffixes = {row[0] for row in rows if row[1] == "x86_64"}
    objects = sorted(build.glob(
        "CMakeFiles/optfarm_engine_runtime_ukernels.dir/**/*.cc.o"))
    # Objects that are left of files that no longer exist.
    objects = [o for o in objects if any(folder.rglob(o.name[:-2]))]
    if platform.machine() != "x86_64" or objdump is None or not objects:
        print("skipped: no objects for x86-64, or no objdump")
        return 77
    wrong = []
    seen = set()
    for path in objects:
        suffix = suffix_of(path.name[:-len(".cc.o")], suffixes)
        seen.add(suffix)
        code = subprocess.run(
            [objdump, "-d", "--no-show-raw-insn", str(path)],
            check=True, capture_output=True, text=True).stdout
        for name, (mark, allowed) in MARKS.items():
            found = mark.search(code)
            if found and suffix not in allowed:
                line = code[:found.end()].splitlines()[-1].strip()
                wrong.append(f"{path.name}: an instruction of {name}: {line}")
        if suffix == "amx_int8":
            wrong += [f"{path.name}: has no {name}" for name in AMX
                      if f"\t{name} " not in code and f"\t{name}\n" not in code]
    wrong += [f"no object is for {suffix}" for suffix in suffixes - seen]
    print("\n".join(wrong) or f"{len(objects)} objects are as their names say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
