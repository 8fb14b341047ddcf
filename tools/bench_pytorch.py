#!/usr/bin/env python3
"""A ResNet training step in PyTorch beside `bench step`, in turn on this machine.

Needs torch and torchvision in the Python that runs it (a throw-away virtual environment will do); nothing
else in the tree does. Both sides: fp32, the same batch, image size, threads and batch-norm mode, forward,
backward from a fixed gradient of the unit-length embeddings, Adam. PyTorch runs in channels_last.

  tools/bench_pytorch.py --bench build/bin/bench [--batch 16] [--bn train|frozen] [--rounds 3]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import torch
import torchvision


def pytorch_step_ms(options):
    torch.set_num_threads(options.threads)
    network = getattr(torchvision.models, options.arch)(weights=None)
    network.fc = torch.nn.Linear(network.fc.in_features, 512)
    network = network.to(memory_format=torch.channels_last).train()
    if options.bn == "frozen":
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.eval()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-5)
    size = options.image_size
    images = torch.randn(options.batch, 3, size, size).to(memory_format=torch.channels_last)
    gradient = torch.randn(options.batch, 512) * 1e-3
    times = []
    for _ in range(options.repeats + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.normalize(network(images)).backward(gradient)
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def rankine_step_ms(options):
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "step.json")
        subprocess.run(
            [options.bench, "step", "--arch", options.arch, "--batch", str(options.batch),
             "--image-size", str(options.image_size), "--bn", options.bn, "--threads",
             str(options.threads), "--repeats", str(options.repeats), "--json", result],
            check=True, stdout=subprocess.DEVNULL)
        with open(result, encoding="utf-8") as file:
            return json.load(file)["step_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", default="build/bin/bench")
    parser.add_argument("--arch", default="resnet50", choices=["resnet18", "resnet50"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--bn", default="train", choices=["train", "frozen"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ratios = []
    print(f"PyTorch {torch.__version__}, {options.arch}, batch {options.batch}, {options.bn}")
    for _ in range(options.rounds):
        theirs, ours = pytorch_step_ms(options), rankine_step_ms(options)
        ratios.append(theirs / ours)
        print(f"PyTorch {theirs:8.1f} ms   Rankine {ours:8.1f} ms   ratio {ratios[-1]:.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
