"""tools/datasets/lay_out_dataset.py on small copies of each set's lists:
python3 tests/tools/scripts/lay_out_dataset_test.py"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools" / "datasets" / "lay_out_dataset.py"


class LayOut(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "a set"
        self.out = pathlib.Path(self.folder.name) / "out"

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_script(self, kind, *more):
        command = [sys.executable, SCRIPT, kind, self.root, self.out, *more]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)

    def laid_out(self, kind, *more):
        """Links below OUT, each with what it points to below ROOT; and what was said."""
        done = self.run_script(kind, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = {}
        for link in sorted(self.out.rglob("*")):
            if link.is_symlink():
                self.assertTrue(link.is_file())
                found[str(link.relative_to(self.out))] = str(link.resolve().relative_to(self.root.resolve()))
        return found, done.stdout

    def refused(self, kind, words, *more):
        done = self.run_script(kind, *more)
        self.assertEqual(done.returncode, 3)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))
        self.assertIn(words, done.stderr)
        self.assertFalse(self.out.exists())

    def make_sop(self):
        head = "image_id class_id super_class_id path\n"
        self.write("Ebay_train.txt", head + "1 1 1 bicycle_final/11_0.JPG\n2 2 12 coffee_maker_final/22_1.JPG\n")
        self.write("Ebay_test.txt", head + "3 11319 1 bicycle_final/33_0.JPG\n")
        for name in ("bicycle_final/11_0.JPG", "coffee_maker_final/22_1.JPG", "bicycle_final/33_0.JPG"):
            self.write(name)

    def test_sop(self):
        self.make_sop()
        found, said = self.laid_out("sop")
        self.assertEqual(found, {
            "train/bicycle/00001/bicycle_final_11_0.JPG": "bicycle_final/11_0.JPG",
            "train/coffee_maker/00002/coffee_maker_final_22_1.JPG": "coffee_maker_final/22_1.JPG",
            "test/bicycle/11319/bicycle_final_33_0.JPG": "bicycle_final/33_0.JPG"})
        self.assertEqual(said, "train: 2 images of 2 classes in 2 categories; published are 59,551 of 11,318\n"
                               "test: 1 images of 1 classes in 1 categories; published are 60,502 of 11,316\n")

    def test_inshop_with_its_list_in_a_folder(self):
        names = ["img/MEN/Denim/id_1/01_1_front.jpg", "img/MEN/Denim/id_1/01_2_side.jpg",
                 "img/WOMEN/Dresses/id_2/02_1_front.jpg", "img/MEN/Tees_Tanks/id_2/02_1_front.jpg"]
        self.write("Eval/list_eval_partition.txt", "4\nimage_name item_id evaluation_status\n" +
                   "".join(f"{name}    {item}   {status}\n" for name, item, status in
                           zip(names, ("id_1", "id_1", "id_2", "id_2"), ("query", "gallery", "train", "train"))))
        for inside in ("", "Img/"):  # unpacked beside the lists, or where its archive is
            for name in names:
                self.write(inside + name)
            found, said = self.laid_out("inshop")
            shutil.rmtree(self.out)
            before = inside.replace("/", "_")
            self.assertEqual(found, {
                f"query/MEN_Denim/id_1/{before}img_MEN_Denim_id_1_01_1_front.jpg": inside + names[0],
                f"gallery/MEN_Denim/id_1/{before}img_MEN_Denim_id_1_01_2_side.jpg": inside + names[1],
                f"train/WOMEN_Dresses/id_2/{before}img_WOMEN_Dresses_id_2_02_1_front.jpg": inside + names[2],
                f"train/WOMEN_Dresses/id_2/{before}img_MEN_Tees_Tanks_id_2_02_1_front.jpg": inside + names[3]})
            self.assertIn("query: 1 images of 1 classes in 1 categories", said)

    def test_cub_is_split_by_class(self):
        self.write("images.txt", "1 100.Brown_Pelican/a.jpg\n2 101.White_Pelican/b.jpg\n")
        self.write("image_class_labels.txt", "1 100\n2 101\n")
        for name in ("images/100.Brown_Pelican/a.jpg", "images/101.White_Pelican/b.jpg"):
            self.write(name)
        self.assertEqual(sorted(self.laid_out("cub")[0]),
                         ["test/101.White_Pelican/images_101.White_Pelican_b.jpg",
                          "train/100.Brown_Pelican/images_100.Brown_Pelican_a.jpg"])

    def test_vehicleid_takes_the_test_set_that_is_asked_for(self):
        self.write("train_test_split/train_list.txt", "17 3\n")
        self.write("train_test_split/test_list_800.txt", "18 4\n")
        self.write("train_test_split/test_list_1600.txt", "18 4\n19 5\n")
        for number in (17, 18, 19):
            self.write(f"image/{number:07}.jpg")
        found, _ = self.laid_out("vehicleid", "--test", "1600")
        self.assertEqual(sorted(found), ["test/00004/image_0000018.jpg", "test/00005/image_0000019.jpg",
                                         "train/00003/image_0000017.jpg"])

    def test_inaturalist(self):
        for split, name in (("train", "train_val2018/Plantae/7477/a.jpg"), ("test", "train_val2018/Aves/12/b.jpg")):
            self.write(f"Inat_dataset_splits/Inaturalist_{split}_set1.txt", name + "\n")
            self.write(name)
        self.assertEqual(sorted(self.laid_out("inat")[0]), ["test/Aves/12/train_val2018_Aves_12_b.jpg",
                                                            "train/Plantae/7477/train_val2018_Plantae_7477_a.jpg"])

    def test_what_cannot_be_is_refused_and_nothing_is_written(self):
        self.make_sop()
        self.refused("inshop", "list_eval_partition.txt: No such file or directory; give the folder that the set")
        (self.root / "bicycle_final/33_0.JPG").unlink()
        self.refused("sop", "33_0.JPG: is not there (1 of 3 pictures are missing)")
        self.write("Ebay_test.txt", "image_id\n3 11319 1\n")
        self.refused("sop", "Ebay_test.txt: line 2: 4 columns are expected")
        self.write("Ebay_test.txt", "image_id\n3 x 1 bicycle_final/33_0.JPG\n")
        self.refused("sop", "Ebay_test.txt: line 2: 'x' is no number")
        self.write("Ebay_test.txt", "image_id\n3 5 1 bicycle_final/../../33_0.JPG\n")
        self.refused("sop", "names a picture outside of")
        self.write("Ebay_test.txt", "3 11319 1 bicycle_final/33_0.JPG\n")
        self.refused("sop", "Ebay_test.txt: line 1: the names of the columns are expected, image_id first")
        self.write("Ebay_test.txt", "image_id class_id super_class_id path\n")
        self.refused("sop", "name no picture of test")
        (self.root / "Ebay_test.txt").write_bytes(b"\xff\xfe\n")
        self.refused("sop", "Ebay_test.txt: is no text in UTF-8")

    def test_classes_stay_inside(self):
        head = "1\nimage_name item_id evaluation_status\n"
        for label in ("../../x", ".hidden", ".."):
            self.write("list_eval_partition.txt", head + "".join(
                f"img/a/b/c/{status}.jpg {label} {status}\n" for status in ("train", "query", "gallery")))
            self.refused("inshop", f"its class or category '{label}' is no name of a folder")

    def test_only_vehicles_have_several_test_sets(self):
        self.make_sop()
        done = self.run_script("sop", "--test", "800")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--test: sop has one test set", done.stderr)

    def test_a_folder_that_is_there_stays(self):
        self.make_sop()
        self.out.mkdir()
        done = self.run_script("sop")
        self.assertEqual(done.returncode, 3)
        self.assertIn("is there already", done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])
        self.out.rmdir()
        self.out.symlink_to("nowhere")
        self.assertIn("is there already", self.run_script("sop").stderr)


if __name__ == "__main__":
    unittest.main()
