#!/usr/bin/env python3
"""Rankine's weights against PyTorch itself: what torchvision writes is read, what Rankine writes is loaded.

A throw-away environment is made for PyTorch and removed again (--venv DIR: this one is used and kept;
--python PYTHON: an interpreter that has torch, torchvision, safetensors, h5py, onnx, onnxruntime and keras
already). With drawn weights it checks that
  - every container and number type of torch.save(), a training checkpoint, a model saved whole and
    safetensors of a ResNet become the same tensors, bit for bit (16-bit ones: as PyTorch widens them);
  - the safetensors file that comes back is byte for byte what the official writer makes, and loads into
    torchvision with strict=True;
  - Keras's own ResNet-50, saved by Keras in each of its formats, becomes a network with Keras's features;
  - features of pictures agree with torchvision's (resnet18, resnet50, googlenet, inception_v3), and a run's
    embeddings with those of the loader that `convert --from-run` writes (resnet20 too, and every pooling):
    cosine at least 0.99999, and no farther off than a hundredth of what tells the pictures apart;
  - the ONNX file of each, looked through by onnx.checker and run by onnxruntime with batches of 1, 3 and 8,
    gives these embeddings too.
Prints a line a check and ends with exit code 1 where one failed.

Usage: check_with_torch.py [--bin build/bin] [--venv DIR | --python PYTHON]
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile

REQUIREMENTS = ["torch", "torchvision", "safetensors", "h5py", "onnx", "onnxruntime", "keras"]


def make_environment(folder):
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return python


class Checks:
    def __init__(self):
        self.failures = 0

    def expect(self, holds, what):
        print(("pass  " if holds else "FAIL  ") + what, flush=True)
        self.failures += not holds


def convert(programs, *arguments):
    command = [os.path.join(programs, "convert"), "--device", "cpu", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, end="")
    return done.returncode == 0


def saved_forms(torch, model, folder, name):
    """{file: what its tensors are worth}"""
    import safetensors.torch
    state = model.state_dict()
    forms = {}

    def save(label, thing, worth=state, **options):
        path = os.path.join(folder, f"{name}_{label}.pth")
        torch.save(thing, path, **options)
        forms[path] = worth

    def cast(dtype):
        return {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}

    save("zip", state)
    save("stream", state, _use_new_zipfile_serialization=False)
    save("model", model)
    save("channels_last", {k: v.contiguous(memory_format=torch.channels_last) if v.dim() == 4 else v
                           for k, v in state.items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    save("training", {"epoch": 3, "state_dict": {"module." + k: v for k, v in state.items()},
                      "optimizer": optimizer.state_dict()})
    for label, dtype in [("half", torch.float16), ("bfloat16", torch.bfloat16), ("double", torch.float64)]:
        small = cast(dtype)
        save(label, small, {k: v.float() if v.is_floating_point() else v for k, v in small.items()})
    path = os.path.join(folder, f"{name}.safetensors")
    safetensors.torch.save_file(state, path, metadata={"format": "pt"})
    forms[path] = state
    return forms


def check_tensors(torch, checks, programs, forms, folder):
    import h5py
    import safetensors.torch
    for path, worth in forms.items():
        label = os.path.basename(path)
        ours = os.path.join(folder, "ours.h5")
        if not convert(programs, path, ours):
            checks.expect(False, f"{label}: converted")
            continue
        with h5py.File(ours, "r") as file:
            read = {k: torch.from_numpy(file["weights"][k][()]) if file["weights"][k].shape
                    else torch.tensor(int(file["weights"][k][()])) for k in file["weights"]}
        equal = read.keys() == worth.keys() and all(torch.equal(read[k], worth[k]) for k in worth)
        checks.expect(equal, f"{label}: {len(read)} tensors equal in every bit")
        back = os.path.join(folder, "back.safetensors")
        written = convert(programs, ours, back)
        loaded = safetensors.torch.load_file(back) if written else {}
        checks.expect(loaded.keys() == worth.keys() and all(torch.equal(loaded[k], worth[k]) for k in worth),
                      f"{label}: equal through safetensors")


def check_export(torch, torchvision, checks, programs, name, model, folder):
    import safetensors
    import safetensors.torch
    source = os.path.join(folder, f"{name}_zip.pth")
    ours, official = os.path.join(folder, "out.safetensors"), os.path.join(folder, "official.safetensors")
    convert(programs, source, ours)
    with safetensors.safe_open(ours, "pt") as file:
        metadata = file.metadata()
    # The official writer keeps its metadata in a map without an order, so one entry is compared.
    one = os.path.join(folder, "one.safetensors")
    safetensors.torch.save_file(safetensors.torch.load_file(ours), official, metadata={"format": "pt"})
    safetensors.torch.save_file(model.state_dict(), one, metadata={"format": "pt"})
    with open(official, "rb") as a, open(one, "rb") as b:
        checks.expect(a.read() == b.read(), f"{name}: the official writer makes the same file of both")
    with open(ours, "rb") as a, open(one, "rb") as b:
        mine, theirs = a.read(), b.read()
    size = 8 + int.from_bytes(mine[:8], "little"), 8 + int.from_bytes(theirs[:8], "little")
    checks.expect(mine[size[0]:] == theirs[size[1]:], f"{name}: its data lie as the official writer's do")
    entries = [text[8:].split(b'},"', 1)[1].rstrip(b" ") for text in (mine[:size[0]], theirs[:size[1]])]
    checks.expect(entries[0] == entries[1], f"{name}: its header too, byte for byte behind the metadata")
    checks.expect(metadata.get("format") == "pt", f"{name}: metadata say format pt")
    fresh = getattr(torchvision.models, name)()
    fresh.load_state_dict(safetensors.torch.load_file(ours), strict=True)
    checks.expect(all(torch.equal(a, b) for a, b in zip(fresh.state_dict().values(),
                                                        model.state_dict().values())),
                  f"{name}: loads into torchvision with strict=True")


def expect_agreement(checks, ours, theirs, what):
    """Rows of unit length. Untrained networks see all pictures alike, so what tells these apart must agree as well."""
    same = ours.shape == theirs.shape
    cosine = float((ours * theirs).sum(1).min()) if same else 0.0
    apart = float(((ours - theirs) ** 2).sum() / ((theirs - theirs.mean(0)) ** 2).sum()) ** 0.5 if same else 1.0
    checks.expect(cosine >= 0.99999 and apart < 0.01,
                  f"{what}: cosine {cosine:.7f}, off by {apart:.1e} of what tells them apart")


def check_onnx(checks, path, images, wanted, what):
    """images, wanted: arrays [8, 3, H, W] and [8, D]; the graph in `path` makes one of the other."""
    import numpy
    import onnx
    import onnxruntime
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = [session.run(None, {"images": images[begin:end]})[0] for begin, end in [(0, 1), (1, 4), (0, 8)]]
    for part in given:
        off = float(numpy.abs(numpy.linalg.norm(part, axis=1) - 1).max())
        if off > 1e-5:
            checks.expect(False, f"{what}: rows of onnxruntime's are off unit length by {off:.1e}")
    expect_agreement(checks, numpy.concatenate(given), numpy.concatenate([wanted[:4], wanted]),
                     f"{what}, by onnxruntime in batches of 1, 3 and 8")


def check_keras(checks, programs, folder):
    """ResNet-50 as Keras itself saves it, and its features of noise in Keras and by the exported graph."""
    os.environ["KERAS_BACKEND"] = "torch"
    try:
        import keras
    except ImportError:
        checks.expect(False, "there is no keras here: what it saves was not looked at")
        return
    import numpy
    keras.utils.set_random_seed(5)
    model = keras.applications.ResNet50(weights=None, include_top=False, pooling="avg", input_shape=(224, 224, 3))
    draw = numpy.random.default_rng(5)
    for layer in model.layers:  # statistics that training would have changed
        if "BatchNormalization" in type(layer).__name__:
            gamma, beta, mean, variance = [w.shape for w in layer.get_weights()]
            layer.set_weights([draw.uniform(0.5, 1, gamma), draw.uniform(-1, 1, beta),
                               draw.uniform(-0.25, 0.25, mean), draw.uniform(0.75, 1.25, variance)])
        elif "Conv" in type(layer).__name__:
            kernel, bias = layer.get_weights()
            layer.set_weights([kernel, draw.uniform(-0.2, 0.2, bias.shape)])
    pixels = draw.integers(0, 256, (8, 224, 224, 3)).astype("float32")
    pixels[::2] = pixels[::2].mean((1, 2), keepdims=True) + pixels[::2] / 4  # not all alike
    wanted = keras.ops.convert_to_numpy(
        model(keras.applications.resnet50.preprocess_input(pixels.copy()), training=False))
    wanted = wanted / numpy.linalg.norm(wanted, axis=1, keepdims=True)
    # As the exported graph's description says: RGB / 255, mean, std = 1 / 255.
    images = ((pixels / 255 - numpy.array([123.68, 116.779, 103.939]) / 255) * 255).transpose(0, 3, 1, 2)
    for file in ["k.weights.h5", "k.keras", "k.h5"]:
        path, graph = os.path.join(folder, file), os.path.join(folder, "k.onnx")
        model.save_weights(path) if file.endswith(".weights.h5") else model.save(path)
        if not convert(programs, path, graph, "--force"):
            checks.expect(False, f"Keras {keras.__version__}'s {file}: converted")
            continue
        check_onnx(checks, graph, images.astype("float32"), wanted, f"Keras {keras.__version__}'s {file}")


def check_features(torch, torchvision, checks, programs, name, model, folder):
    import h5py
    from PIL import Image
    pictures = os.path.join(folder, "pictures")
    torch.manual_seed(3)
    paths = []
    for i in range(8):
        path = os.path.join(pictures, f"class{i // 2}", f"{i}.png")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        coarse = torch.randint(0, 256, (1, 3, 9, 11), dtype=torch.uint8).float()
        fine = torch.nn.functional.interpolate(coarse, (270 + 7 * i, 300), mode="bilinear")[0]
        Image.fromarray(fine.byte().permute(1, 2, 0).numpy()).save(path)
        paths.append(path)
    saved = os.path.join(folder, "features.h5")
    done = subprocess.run([os.path.join(programs, "eval"), "--weights", os.path.join(folder, f"{name}_zip.pth"),
                           "--data", "folder:" + pictures, "--save-embeddings", saved, "--force",
                           "--device", "cpu", "-q"], capture_output=True, text=True)
    if done.returncode != 0:
        checks.expect(False, f"{name}: eval --weights ended with {done.returncode}: {done.stderr}")
        return
    with h5py.File(saved, "r") as file:
        ours = torch.from_numpy(file["embeddings"][()])
    resize, crop = (342, 299) if name == "inception_v3" else (256, 224)
    transform = torchvision.transforms.Compose([
        torchvision.transforms.Resize(resize), torchvision.transforms.CenterCrop(crop),
        torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    batch = torch.stack([transform(Image.open(path).convert("RGB")) for path in paths])
    body = copy.deepcopy(model)
    body.fc = torch.nn.Identity()
    with torch.no_grad():
        theirs = torch.nn.functional.normalize(body(batch))
    expect_agreement(checks, ours, theirs, f"{name}: features of {len(paths)} pictures and torchvision's")
    graph = os.path.join(folder, "features.onnx")
    if convert(programs, os.path.join(folder, f"{name}_zip.pth"), graph):
        check_onnx(checks, graph, batch.numpy(), theirs.numpy(), f"{name}'s features")
    else:
        checks.expect(False, f"{name}: converted to ONNX")


def check_run(torch, checks, programs, folder):
    """A run's weights and loader, in PyTorch: the embeddings that eval gives."""
    import importlib.util
    import h5py
    from PIL import Image
    pictures = os.path.join(folder, "run_pictures")
    torch.manual_seed(4)
    for i in range(16):
        path = os.path.join(pictures, f"class{i // 2}", f"{i}.png")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        coarse = torch.randint(0, 256, (1, 3, 5, 6), dtype=torch.uint8).float()
        fine = torch.nn.functional.interpolate(coarse, (70 + i, 80), mode="bilinear")[0]
        Image.fromarray(fine.byte().permute(1, 2, 0).numpy()).save(path)
    for arch, pool, size in [("resnet18", "avg", 64), ("resnet18", "gem", 64), ("resnet18", "max", 64),
                             ("resnet20", "avg", 32), ("resnet20", "gem", 32), ("googlenet", "avg", 64),
                             ("googlenet", "gem", 64), ("inception_v3", "avg", 96), ("inception_v3", "max", 107)]:
        what = f"{arch}_{pool}"
        run, saved = os.path.join(folder, "run_" + what), os.path.join(folder, what + ".h5")
        weights, loader_file, graph = [os.path.join(folder, f"trained_{what}.{ending}")
                                       for ending in ["safetensors", "py", "onnx"]]
        for command in [
                ["train", "--data", "folder:" + pictures + ",val_classes=0.25", "--arch", arch, "--dim", "24",
                 "--image-size", str(size), "--batch", "8", "--per-class", "2", "--epochs", "1", "--pool", pool,
                 "--out", run],
                ["eval", "--checkpoint", os.path.join(run, "best.h5"), "--data", "folder:" + pictures,
                 "--save-embeddings", saved],
                ["convert", "--from-run", run, weights],
                ["convert", "--from-run", run, graph]]:
            done = subprocess.run([os.path.join(programs, command[0]), *command[1:], "--device", "cpu", "-q"],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                checks.expect(False, f"{command[0]} ended with {done.returncode}: {done.stderr}")
                return
        spec = importlib.util.spec_from_file_location("trained_" + what, loader_file)
        loader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loader)
        with h5py.File(saved, "r") as file:
            ours = torch.from_numpy(file["embeddings"][()])
            paths = [p.decode() for p in file["paths"][()]]
        with torch.no_grad():
            batch = torch.stack([loader.transform(Image.open(os.path.join(pictures, p))) for p in paths])
            theirs = loader.Embedder()(batch)
        run_of = f"a run of {arch} with {pool} pooling"
        expect_agreement(checks, ours, theirs, f"{run_of} and its own loader")
        check_onnx(checks, graph, batch[:8].numpy(), ours[:8].numpy(), run_of)


def drawn_network(torch, torchvision, name):
    """In evaluation, with statistics that training would have moved; of GoogLeNet and Inception-v3 with auxiliary
    classifiers, as torchvision publishes them."""
    torch.manual_seed(1)
    others = {} if name.startswith("resnet") else {"aux_logits": True, "init_weights": False}
    model = getattr(torchvision.models, name)(**others)
    for module in model.modules():  # so that the differences between pictures survive the network
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
    for key, values in model.named_buffers():
        if key.endswith("running_mean"):
            values.uniform_(-0.25, 0.25)
        elif key.endswith("running_var"):
            values.uniform_(0.75, 1.25)
        else:
            values.fill_(7)
    return model.eval()


def run_checks(programs):
    import torch
    import torchvision
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    checks = Checks()
    for name in ["resnet18", "resnet50", "googlenet", "inception_v3"]:
        model = drawn_network(torch, torchvision, name)
        with tempfile.TemporaryDirectory() as folder:
            if name.startswith("resnet"):
                check_tensors(torch, checks, programs, saved_forms(torch, model, folder, name), folder)
                check_export(torch, torchvision, checks, programs, name, model, folder)
            else:
                torch.save(model.state_dict(), os.path.join(folder, f"{name}_zip.pth"))
            check_features(torch, torchvision, checks, programs, name, model, folder)
    with tempfile.TemporaryDirectory() as folder:
        check_run(torch, checks, programs, folder)
    with tempfile.TemporaryDirectory() as folder:
        check_keras(checks, programs, folder)
    print(f"{checks.failures} failed")
    return 1 if checks.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="folder of the programs")
    parser.add_argument("--venv", help="virtual environment to use and keep")
    parser.add_argument("--python", help="an interpreter that has all of it")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    programs = os.path.abspath(options.bin)
    if options.inside:
        return run_checks(programs)
    with tempfile.TemporaryDirectory() as folder:
        python = options.python or make_environment(options.venv or os.path.join(folder, "venv"))
        return subprocess.run([python, os.path.abspath(__file__), "--inside", "--bin", programs],
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
