#!/usr/bin/env python3
"""What Nsight Compute measured, as a table per kernel and one per range of the program: time, bytes from and to
memory, and what share of the GPU's bandwidth and tensor cores that is. Longest first.

  tools/scripts/profile_table.py build/profile/step.csv --gpu H200
  tools/scripts/profile_table.py step.csv --device-bandwidth 4800 --tensor-tflops 989     a GPU that is not known
  tools/scripts/profile_table.py step.csv --gpu H200 --json step.json                     for a script

FILE is the output of ncu --csv, either page: `--page raw` (a column a metric, a row of units below the header)
or without it (a row a metric). Other lines around it are passed over. It needs gpu__time_duration.sum; with
dram__bytes.sum (or dram__bytes_read.sum and dram__bytes_write.sum) and a metric of the tensor pipe the other
columns are filled. `make profile-step` and `make profile-loss` write such files; docs/profiling.md tells how to
read the table.

Columns: calls; time in microseconds, of all calls; its share of the total; bytes, in MB, of all calls; GB/s and its
share of the GPU's bandwidth; share of the cycles in which the tensor cores worked, weighted by time, and that share of
the data sheet's TFLOP/s. Those are at the data sheet's clock: at a lower one as many TFLOP/s less were computed.
"""
import argparse
import csv
import json
import re
import sys

# From data sheets: memory in GB/s, dense fp16 and bf16 in TFLOP/s; tf32 has half of that. A100 and H100 stand for the
# SXM cards with 80 GB. The first name that matches counts, so longer names come first.
GPUS = {
    "A100-SXM4-40GB": (1555, 312),
    "A100-PCIE-40GB": (1555, 312),
    "A100 80GB PCIE": (1935, 312),
    "A100": (2039, 312),
    "H100 PCIE": (2039, 756),
    "H100 NVL": (3938, 835),
    "H100": (3352, 989),
    "GH200 144G": (4900, 989),
    "GH200": (4000, 989),
    "H200 NVL": (4800, 835),
    "H200": (4800, 989),
}
TIME = "gpu__time_duration.sum"
BYTES = [["dram__bytes.sum"], ["dram__bytes_read.sum", "dram__bytes_write.sum"]]
TENSOR = re.compile(r"^sm__(pipe_tensor|inst_executed_pipe_tensor).*\.pct_of_peak_sustained_(elapsed|active)$")
DOMAIN = "rankine"  # engine/driver/cuda/profile.cpp
OUTERMOST = "measured"  # kMeasuredRange of engine/driver/profile.h: left out, because every line has it
SECONDS = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3,
           "s": 1.0, "second": 1.0}
PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


class Unreadable(Exception):
    """Of the file: one line for the user."""


def number(text):
    """ncu writes 1,234.5; what it could not measure is empty or n/a."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def measured(name, unit, text):
    """A metric in seconds, bytes or percent, None where it has no value."""
    value = number(text)
    if value is None:
        return None
    unit = unit.strip().lower()
    if name == TIME:
        if unit not in SECONDS:
            raise Unreadable(f"{name} is in {unit or 'no unit'}; expected one of {', '.join(SECONDS)}")
        return value * SECONDS[unit]
    if name.startswith("dram__bytes"):
        if not unit.endswith("byte") or unit[:-4] not in PREFIXES:
            raise Unreadable(f"{name} is in {unit or 'no unit'}; expected byte, Kbyte, Mbyte or Gbyte")
        return value * PREFIXES[unit[:-4]]
    return value


def wanted(name):
    return name == TIME or any(name in names for names in BYTES) or TENSOR.match(name) is not None


def ranges(cell):
    """The ranges of our domain in a cell like  4711  "rankine:step:none:...:none"  "rankine:conv1:none:..." , the
    outermost first, joined. A range is followed by six fields about its payload, colour and message."""
    names = []
    for entry in re.findall(r'"([^"]*)"', cell):
        domain, _, rest = entry.partition(":")
        if domain == DOMAIN:
            names.append(rest.split(":")[0])
    return " / ".join(name for name in names if name != OUTERMOST)


def table_lines(path):
    """The lines of the CSV proper: from the header on, without the tool's and the program's own."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror}); give the file that ncu --csv wrote") from error
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        why = "expected the output of ncu --csv"
        for line in lines:
            if "No kernels were profiled" in line:
                why = "ncu profiled no kernel; see that the range of --nvtx-include is in the program"
            elif "ERR_NVGPUCTRPERM" in line:
                why = "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM); run it as root"
            elif line.startswith("==ERROR==") and why.startswith("expected"):
                why = "ncu: " + line.removeprefix("==ERROR==").strip()
        raise Unreadable(f"no table in it; {why}")
    return [line for line in lines[start:] if line.startswith('"')]


def read(path):
    """A dictionary of metrics for each call of a kernel, with "kernel" and "range"."""
    rows = csv.reader(table_lines(path))
    header = next(rows)
    column = {name: i for i, name in enumerate(header)}
    if "Kernel Name" not in column:
        raise Unreadable("no column Kernel Name; expected the output of ncu --csv")
    nvtx = next((i for i, name in enumerate(header) if "Push/Pop_Range" in name), None)
    calls = {}

    def call_of(row):
        call = calls.setdefault((row[column["ID"]], row[column.get("Process ID", 0)]), {})
        call["kernel"] = row[column["Kernel Name"]]
        call["range"] = ranges(row[nvtx]) if nvtx is not None else ""
        return call

    if "Metric Name" in column:
        for row in rows:
            name = row[column["Metric Name"]] if len(row) == len(header) else ""
            if wanted(name):
                call_of(row)[name] = measured(name, row[column["Metric Unit"]], row[column["Metric Value"]])
    else:
        units = next(rows, None)
        if units is None:
            raise Unreadable("the table is cut off below its header; profile again")
        metrics = [name for name in header if wanted(name)]
        for row in rows:
            if len(row) != len(header):
                raise Unreadable(f"a row has {len(row)} columns, the header {len(header)}; profile again")
            call = call_of(row)
            for name in metrics:
                call[name] = measured(name, units[column[name]], row[column[name]])
    calls = list(calls.values())
    if not any(call.get(TIME) for call in calls):
        raise Unreadable(f"no kernel with {TIME} in it; give ncu that metric")
    return calls


def bytes_of(call):
    for names in BYTES:
        if all(call.get(name) is not None for name in names):
            return sum(call[name] for name in names)
    return None


def tensor_of(call):
    return next((value for name, value in sorted(call.items()) if TENSOR.match(name) and value is not None), None)


def add_up(calls, key, options):
    """A line for each value of call[key], longest first."""
    groups = {}
    for call in calls:
        groups.setdefault(call[key], []).append(call)
    total = sum(call.get(TIME) or 0 for call in calls)
    lines = []
    for name, members in groups.items():
        seconds = sum(call.get(TIME) or 0 for call in members)
        line = {key: name, "calls": len(members), "microseconds": 1e6 * seconds,
                "share": seconds / total if total else 0}
        moved = [bytes_of(call) for call in members]
        if None not in moved and seconds > 0:
            line["bytes"] = sum(moved)
            line["gb_per_second"] = 1e-9 * line["bytes"] / seconds
            if options.device_bandwidth:
                line["bandwidth_share"] = line["gb_per_second"] / options.device_bandwidth
        tensor = [tensor_of(call) for call in members]
        if None not in tensor and seconds > 0:
            line["tensor_share"] = sum(t / 100 * (call.get(TIME) or 0) for t, call in zip(tensor, members)) / seconds
            if options.tensor_tflops:
                line["tflops"] = line["tensor_share"] * options.tensor_tflops
        lines.append(line)
    return sorted(lines, key=lambda line: (-line["microseconds"], line[key]))


def short(name, width):
    """A kernel's name without its arguments; its template arguments tell kernels apart."""
    name = re.sub(r"\((?:bool|int|unsigned int|long)\)", "", name).removeprefix("void ")
    depth = 0
    for i, letter in enumerate(name):
        depth += (letter in "<{") - (letter in ">}")
        if letter == "(" and depth == 0 and not name.startswith("(anonymous namespace)", i):
            name = name[:i]
            break
    return name if len(name) <= width else name[:width - 3] + "..."


def print_table(title, lines, key, options):
    percent = lambda value: f"{100 * value:.0f} %"
    columns = [("calls", lambda line: str(line["calls"])),
               ("us", lambda line: f"{line['microseconds']:.1f}"),
               ("share", lambda line: f"{100 * line['share']:.1f} %"),
               ("MB", lambda line: f"{1e-6 * line['bytes']:.1f}" if "bytes" in line else ""),
               ("GB/s", lambda line: f"{line['gb_per_second']:.0f}" if "bytes" in line else ""),
               ("of peak", lambda line: percent(line["bandwidth_share"]) if "bandwidth_share" in line else ""),
               ("tensor", lambda line: percent(line["tensor_share"]) if "tensor_share" in line else ""),
               ("TFLOP/s", lambda line: f"{line['tflops']:.0f}" if "tflops" in line else "")]
    rows = [[name for name, _ in columns]] + [[cell(line) for _, cell in columns] for line in lines[:options.top]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    names = [title] + [short(line[key], options.width) or "(none)" for line in lines[:options.top]]
    for row, name in zip(rows, names):
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) + "  " + name)
    if len(lines) > options.top:
        rest = lines[options.top:]
        print(f"{len(rest)} more take {100 * sum(line['share'] for line in rest):.1f} %; --top {len(lines)} shows them")


def known_gpu(name):
    """Of the first of GPUS that is in the name as a word: a GH200 is no H200."""
    for gpu, values in GPUS.items():
        if re.search(rf"(?<![A-Z0-9]){gpu}(?![0-9])", name.upper()):
            return values
    return None


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"error: {message}; see --help", file=sys.stderr)
        sys.exit(2)


def parse_options():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="what ncu --csv wrote")
    parser.add_argument("--gpu", help="A100, H100, H200 or GH200, or the name nvidia-smi gives: sets the two below")
    parser.add_argument("--device-bandwidth", type=float, help="GB/s of the GPU's memory, of its data sheet")
    parser.add_argument("--tensor-tflops", type=float, help="dense TFLOP/s of its tensor cores in the precision used")
    parser.add_argument("--precision", default="fp16", choices=["fp32", "tf32", "fp16", "bf16"],
                        help="of what was profiled: --gpu takes half of the tensor cores' rate for tf32 (fp16)")
    parser.add_argument("--top", type=int, default=40, help="lines of each table (40)")
    parser.add_argument("--width", type=int, default=96, help="letters of a kernel's name (96)")
    parser.add_argument("--json", help="also write both tables to this file")
    options = parser.parse_args()
    if options.gpu:
        values = known_gpu(options.gpu)
        if values is None and options.device_bandwidth is None:
            parser.error(f"--gpu {options.gpu}: not known; give its --device-bandwidth and --tensor-tflops")
        bandwidth, tflops = values or (None, None)
        options.device_bandwidth = options.device_bandwidth or bandwidth
        if tflops and options.precision == "tf32":
            tflops /= 2
        options.tensor_tflops = options.tensor_tflops or tflops
    return options


def main():
    options = parse_options()
    try:
        calls = read(options.file)
    except Unreadable as error:
        print(f"error: {options.file}: {error}", file=sys.stderr)
        return 3
    kernels = add_up(calls, "kernel", options)
    by_range = add_up(calls, "range", options) if any(call["range"] for call in calls) else []
    total = sum(line["microseconds"] for line in kernels)
    peak = ", ".join(f"{value:g} {unit}" for value, unit in
                     ((options.device_bandwidth, "GB/s"), (options.tensor_tflops, "TFLOP/s")) if value)
    print(f"{len(calls)} calls of {len(kernels)} kernels, {total:.1f} us" + (f"; peak: {peak}" if peak else
          "; without --gpu no share of the bandwidth is known"))
    print_table("kernel", kernels, "kernel", options)
    if by_range:
        print()
        print_table("range", by_range, "range", options)
    if options.json:
        try:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"microseconds": total, "device_bandwidth": options.device_bandwidth,
                           "tensor_tflops": options.tensor_tflops, "kernels": kernels, "ranges": by_range},
                          file, indent=1)
                file.write("\n")
        except OSError as error:
            print(f"error: {options.json}: cannot be written ({error.strerror})", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
