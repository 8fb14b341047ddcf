#!/usr/bin/env python3
"""Lays out a published data set as folders of links, which `train --data folder:OUT` reads. Nothing is copied; the
splits are those of the set's own lists.

  tools/datasets/lay_out_dataset.py sop Stanford_Online_Products sop            train, test; categories
  tools/datasets/lay_out_dataset.py inshop In-shop inshop                       train, query, gallery; categories
  tools/datasets/lay_out_dataset.py cub CUB_200_2011 cub                        classes 1 to 100 train, 101 to 200 test
  tools/datasets/lay_out_dataset.py vehicleid VehicleID vehicleid --test 800    train, test
  tools/datasets/lay_out_dataset.py inat iNaturalist inat                       train, test; categories

What it reads, below ROOT:
  sop        Ebay_train.txt, Ebay_test.txt: image_id class_id super_class_id path, a line of names first
  inshop     list_eval_partition.txt (or in Eval/ or Anno/): image_name item_id evaluation_status, behind two lines;
             its img/ beside it or in Img/
  cub        images.txt, image_class_labels.txt, images/
  vehicleid  train_test_split/train_list.txt and test_list_800.txt (or 1600, 2400): image_id vehicle_id; image/
  inat       Inat_dataset_splits/Inaturalist_train_set1.txt and test: a path a line, .../<category>/<class>/<image>

Exit code 3, one line and nothing written if a list cannot be read or names a picture that is not there.
"""
import argparse
import collections
import os
import pathlib
import sys

# Images and classes that the papers count.
PUBLISHED = {
    "sop": {"train": (59551, 11318), "test": (60502, 11316)},
    "inshop": {"train": (25882, 3997), "query": (14218, 3985), "gallery": (12612, 3985)},
    "cub": {"train": (5864, 100), "test": (5924, 100)},
}

Item = collections.namedtuple("Item", "split category label image")  # image: below ROOT; category: "" for none


class Refused(Exception):
    pass


def rows(path, columns, skip=0, names=""):
    """The lines of a list as tuples of so many words, with their numbers; `names` is what the last one of those that
    are skipped begins with."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}; give the folder that the set was unpacked into") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: is no text in UTF-8; download it again") from error
    if skip and not (lines[skip - 1:] and lines[skip - 1].startswith(names)):
        raise Refused(f"{path}: line {skip}: the names of the columns are expected, {names} first; download it again")
    for number, line in enumerate(lines[skip:], skip + 1):
        words = line.split(None, columns - 1)
        if not words:
            continue
        if len(words) != columns:
            raise Refused(f"{path}: line {number}: {columns} columns are expected; download it again")
        yield number, [word.strip() for word in words]


def number_in(text, path, line):
    if not text.isdecimal():
        raise Refused(f"{path}: line {line}: '{text}' is no number; download it again")
    return int(text)


def sop(root, _):
    for split in ("train", "test"):
        path = root / f"Ebay_{split}.txt"
        for line, (_, label, _, image) in rows(path, 4, skip=1, names="image_id"):
            category = image.split("/")[0].removesuffix("_final")
            yield Item(split, category, f"{number_in(label, path, line):05}", image)


def inshop(root, _):
    name = "list_eval_partition.txt"
    path = next((at for at in (root / name, root / "Eval" / name, root / "Anno" / name) if at.exists()), root / name)
    inside = "Img" if (root / "Img" / "img").is_dir() else ""
    category_of = {}  # a few items have pictures in two
    for line, (image, label, split) in rows(path, 3, skip=2, names="image_name"):
        if split not in ("train", "query", "gallery"):
            raise Refused(f"{path}: line {line}: '{split}' is none of train, query, gallery; download it again")
        parts = image.split("/")
        category = category_of.setdefault(label, "_".join(parts[1:3]) if len(parts) > 4 else "")
        yield Item(split, category, label, f"{inside}/{image}" if inside else image)


def cub(root, _):
    labels = {number: (line, label) for line, (number, label) in rows(root / "image_class_labels.txt", 2)}
    for line, (number, image) in rows(root / "images.txt", 2):
        if number not in labels:
            raise Refused(f"{root / 'images.txt'}: line {line}: image {number} has no class in image_class_labels.txt")
        label = number_in(labels[number][1], root / "image_class_labels.txt", labels[number][0])
        yield Item("train" if label <= 100 else "test", "", image.split("/")[0], f"images/{image}")


def vehicleid(root, test):
    for split, name in (("train", "train_list"), ("test", f"test_list_{test}")):
        path = root / "train_test_split" / f"{name}.txt"
        for line, (image, vehicle) in rows(path, 2):
            yield Item(split, "", f"{number_in(vehicle, path, line):05}",
                       f"image/{number_in(image, path, line):07}.jpg")


def inat(root, _):
    for split in ("train", "test"):
        path = root / "Inat_dataset_splits" / f"Inaturalist_{split}_set1.txt"
        for line, (image,) in rows(path, 1):
            parts = image.split("/")
            if len(parts) < 3:
                raise Refused(f"{path}: line {line}: '{image}' is no path .../<category>/<class>/<image>")
            yield Item(split, parts[-3], parts[-2], image)


SETS = {each.__name__: each for each in (sop, inshop, cub, vehicleid, inat)}


def links(root, out, items):
    """Where each link goes and what it points to."""
    found = {}
    for item in items:
        for name in (item.category, item.label):
            if name.startswith(".") or "/" in name or (name == item.label and not name):
                raise Refused(f"{item.image}: its class or category '{name}' is no name of a folder; download the list "
                              "again")
        if os.path.isabs(item.image) or ".." in pathlib.PurePosixPath(item.image).parts:
            raise Refused(f"{item.image}: a list names a picture outside of {root}; download it again")
        target = root / item.image
        # All of the path, for a class may have pictures of one name in several folders.
        link = out / item.split / item.category / item.label / item.image.replace("/", "_")
        if found.setdefault(link, target) != target:
            raise Refused(f"{item.image}: another picture of its class would have the same name; rename it")
    missing = [target for target in found.values() if not target.is_file()]
    if missing:
        raise Refused(f"{missing[0]}: is not there ({len(missing)} of {len(found)} pictures are missing); "
                      "unpack the set again")
    return found


def summary(kind, items):
    images, classes, categories = collections.Counter(), {}, {}
    for item in dict.fromkeys(items):  # a list may have a line twice
        images[item.split] += 1
        classes.setdefault(item.split, set()).add(item.label)
        categories.setdefault(item.split, set()).add(item.category)
    for split, count in images.items():
        in_categories = f" in {len(categories[split])} categories" if categories[split] != {""} else ""
        line = f"{split}: {count:,} images of {len(classes[split]):,} classes{in_categories}"
        published = PUBLISHED.get(kind, {}).get(split)
        if published and published != (count, len(classes[split])):
            line += f"; published are {published[0]:,} of {published[1]:,}"
        yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=SETS, help="which data set")
    parser.add_argument("root", type=pathlib.Path, help="the folder that it was unpacked into")
    parser.add_argument("out", type=pathlib.Path, help="the folder to make")
    parser.add_argument("--test", choices=("800", "1600", "2400"), help="vehicleid: which test set (800)")
    options = parser.parse_args()
    if options.test and options.set != "vehicleid":
        parser.error(f"--test: {options.set} has one test set")
    try:
        if os.path.lexists(options.out):
            raise Refused(f"{options.out}: is there already; give another folder, or remove it")
        root = options.root.resolve()
        items = list(SETS[options.set](root, options.test or "800"))
        for split in ("train", "query", "gallery") if options.set == "inshop" else ("train", "test"):
            if not any(item.split == split for item in items):
                raise Refused(f"{root}: its lists name no picture of {split}; download it again")
        for link, target in links(root, options.out, items).items():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    except (Refused, OSError) as error:
        sys.exit(print(f"error: {error}", file=sys.stderr) or 3)
    print("\n".join(summary(options.set, items)))


if __name__ == "__main__":
    main()
