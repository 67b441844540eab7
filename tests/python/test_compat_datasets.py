"""paddle.dataset reads files in Fluid's formats, and names a missing file."""

import gzip
import io
import os
import pickle
import struct
import tarfile
import warnings
import zipfile

import numpy
import penstock.compat
import penstock.fluid
import pytest


@pytest.fixture
def dataset(monkeypatch, tmp_path):
    """paddle.dataset, with its files in tmp_path."""
    monkeypatch.syspath_prepend(penstock.compat.path())
    for module, names in (
        (penstock.fluid.executor, ("array_kind", "empties_are_vectors")),
        (penstock.fluid.framework, ("api_version",)),
    ):
        for name in names:  # undoes the alias's changes after the test
            monkeypatch.setattr(module, name, getattr(module, name))
    import paddle.dataset

    monkeypatch.setattr(paddle.dataset.common, "DATA_HOME", str(tmp_path))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "paddle.dataset: .* is not the file that Fluid downloads")
        yield paddle.dataset


def place(home, name, data):
    path = home / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def tar_of(files, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def zip_of(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_missing_file_is_named_with_its_origin(dataset, tmp_path):
    readers = {
        "mnist/train-images-idx3-ubyte.gz": dataset.mnist.train,
        "cifar/cifar-10-python.tar.gz": dataset.cifar.train10,
        "uci_housing/housing.data": dataset.uci_housing.test,
        "imdb/imdb%2FaclImdb_v1.tar.gz": dataset.imdb.word_dict,
        "imikolov/imikolov%2Fsimple-examples.tgz": dataset.imikolov.build_dict,
        "movielens/movielens%2Fml-1m.zip": dataset.movielens.max_user_id,
        "conll05st/conll05st%2FwordDict.txt": dataset.conll05.get_dict,
        "wmt14/wmt14.tgz": lambda: dataset.wmt14.train(10),
        "wmt16/wmt16.tar.gz": lambda: dataset.wmt16.train(10, 10),
        "flowers/102flowers.tgz": dataset.flowers.train,
        "voc2012/VOCtrainval_11-May-2012.tar": dataset.voc2012.train,
        "corpora/movie_reviews.zip": dataset.sentiment.get_word_dict,
        "MQ2007/MQ2007/MQ2007/Fold1/train.txt": lambda: next(dataset.mq2007.train()),
        "mine/x.tar": lambda: dataset.common.download("http://localhost/x.tar", "mine", None),
    }
    for name, read in readers.items():
        with pytest.raises(FileNotFoundError) as caught:
            read()
        text = str(caught.value)
        assert text.startswith(f"paddle.dataset: {tmp_path / name} is missing, and nothing is downloaded here; get ")
        assert "http" in text and text.endswith("[E-dataset-missing]")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        "cifar",
        "conll05",
        "flowers",
        "imdb",
        "imikolov",
        "mnist",
        "movielens",
        "sentiment",
        "uci_housing",
        "wmt14",
        "wmt16",
    ],
)
def test_fetch_reports_the_required_files(dataset, name):
    with pytest.raises(FileNotFoundError, match="is missing, and nothing is downloaded here"):
        getattr(dataset, name).fetch()


def test_a_file_with_another_checksum_is_read_with_a_warning(dataset, tmp_path):
    path = place(tmp_path, "mine/x.txt", b"1")
    with pytest.warns(UserWarning, match="x.txt is not the file that Fluid downloads from http://localhost/x.txt"):
        assert dataset.common.download("http://localhost/x.txt", "mine", "0" * 32) == str(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        place(tmp_path, "mine/y.txt", b"1")
        dataset.common.download("http://localhost/y.txt", "mine", dataset.common.md5file(path))


def test_mnist_reads_its_samples(dataset, tmp_path):
    images = numpy.arange(3 * 28 * 28, dtype="u1").reshape(3, 28, 28)
    idx = struct.pack(">4I", 0x803, 3, 28, 28) + images.tobytes()
    place(tmp_path, "mnist/t10k-images-idx3-ubyte.gz", gzip.compress(idx))
    labels = place(tmp_path, "mnist/t10k-labels-idx1-ubyte.gz", gzip.compress(struct.pack(">2I3B", 0x801, 3, 7, 0, 9)))
    samples = list(dataset.mnist.test()())
    assert [label for _, label in samples] == [7, 0, 9]
    assert samples[1][0].shape == (784,) and samples[1][0].dtype == "float32"
    numpy.testing.assert_allclose(samples[1][0], images[1].ravel() / 127.5 - 1, rtol=1e-5, atol=1e-6)
    labels.write_bytes(gzip.compress(struct.pack(">2I2B", 0x801, 2, 7, 0)))
    with pytest.raises(ValueError, match="holds 3 images, but .* holds 2 labels"):
        next(dataset.mnist.test()())
    labels.write_bytes(gzip.compress(b"other"))
    with pytest.raises(ValueError, match="is not an idx file of bytes with 1 dimensions"):
        next(dataset.mnist.test()())


def test_cifar_reads_its_samples(dataset, tmp_path):
    data = numpy.arange(2 * 3072).reshape(2, 3072).astype("u1")
    batches = {
        "cifar-10-batches-py/data_batch_1": pickle.dumps({b"data": data, b"labels": [3, 4]}, 2),
        "cifar-10-batches-py/test_batch": pickle.dumps({"data": data[:1], "labels": [5]}, 2),
    }
    place(tmp_path, "cifar/cifar-10-python.tar.gz", tar_of(batches))
    samples = list(dataset.cifar.train10()())
    assert [label for _, label in samples] == [3, 4]
    numpy.testing.assert_array_equal(samples[1][0], (data[1] / 255.0).astype("float32"))
    cycle = dataset.cifar.test10(cycle=True)()
    assert [next(cycle)[1] for _ in range(3)] == [5, 5, 5]
    fine = {"cifar-100-python/train": pickle.dumps({"data": data, "fine_labels": [98, 99], "coarse_labels": [1, 2]})}
    place(tmp_path, "cifar/cifar-100-python.tar.gz", tar_of(fine))
    assert [label for _, label in dataset.cifar.train100()()] == [98, 99]


def test_uci_housing_reads_its_samples(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset.uci_housing, "UCI_TRAIN_DATA", None)
    rows = numpy.random.RandomState(1).rand(10, 14).round(4)
    place(tmp_path, "uci_housing/housing.data", "\n".join(" ".join(map(str, row)) for row in rows).encode())
    features = (rows - rows.mean(0)) / (rows.max(0) - rows.min(0))
    train, test = list(dataset.uci_housing.train()()), list(dataset.uci_housing.test()())
    assert (len(train), len(test)) == (8, 2)
    numpy.testing.assert_allclose(test[1][0], features[9, :13])
    numpy.testing.assert_allclose(train[3][1], rows[3, 13:])
    numpy.testing.assert_allclose(dataset.uci_housing.predict_reader()[0], features[8, :13])


def test_imdb_reads_its_samples(dataset, tmp_path):
    reviews = {
        "aclImdb/train/pos/0.txt": b"Good, good film!\n",
        "aclImdb/train/neg/0.txt": b"bad film",
        "aclImdb/test/pos/0.txt": b"good",
        "aclImdb/test/neg/0.txt": b"bad bad new",
        "aclImdb/README": b"bad",
    }
    place(tmp_path, "imdb/imdb%2FaclImdb_v1.tar.gz", tar_of(reviews))
    import re

    ids = dataset.imdb.build_dict(re.compile("aclImdb/.*txt$"), 1)
    assert ids == {b"bad": 0, b"good": 1, b"film": 2, "<unk>": 3}
    assert list(dataset.imdb.train(ids)()) == [([1, 1, 2], 0), ([0, 2], 1)]
    assert list(dataset.imdb.test(ids)()) == [([1], 0), ([0, 0, 3], 1)]
    assert dataset.imdb.word_dict() == {"<unk>": 0}


def test_imikolov_reads_its_samples(dataset, tmp_path):
    place(
        tmp_path,
        "imikolov/imikolov%2Fsimple-examples.tgz",
        tar_of(
            {
                "./simple-examples/data/ptb.train.txt": b" a b a \n b \n",
                "./simple-examples/data/ptb.valid.txt": b"a c\n",
            }
        ),
    )
    ids = dataset.imikolov.build_dict(1)
    assert ids == {"<e>": 0, "<s>": 1, b"a": 2, b"b": 3, "<unk>": 4}
    assert list(dataset.imikolov.train(ids, 3)()) == [(1, 2, 3), (2, 3, 2), (3, 2, 0), (1, 3, 0)]
    kind = dataset.imikolov.DataType.SEQ
    assert list(dataset.imikolov.test(ids, 0, kind)()) == [([1, 2, 4], [2, 4, 0])]
    assert list(dataset.imikolov.train(ids, 2, kind)()) == [([1, 3], [3, 0])]
    with pytest.raises(ValueError, match="n must be at least 1"):
        dataset.imikolov.train(ids, -1)
    with pytest.raises(ValueError, match="data_type must be DataType.NGRAM or DataType.SEQ, not 3"):
        dataset.imikolov.train(ids, 2, 3)


def test_movielens_reads_its_samples(dataset, tmp_path):
    place(
        tmp_path,
        "movielens/movielens%2Fml-1m.zip",
        zip_of(
            {
                "ml-1m/movies.dat": b"1::Toy Story (1995)::Animation|Comedy\n3::Story of Men\xe9 (1995)::Comedy\n",
                "ml-1m/users.dat": b"1::F::1::10::48067\n2::M::56::16::70072\n",
                "ml-1m/ratings.dat": b"1::3::5::978300760\n2::1::1::978302109\n",
            }
        ),
    )
    movielens = dataset.movielens
    assert (movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()) == (2, 3, 16)
    assert movielens.movie_categories() == {"Animation": 0, "Comedy": 1}
    assert movielens.get_movie_title_dict() == {"men\xe9": 0, "of": 1, "story": 2, "toy": 3}
    assert repr(movielens.user_info()[2]) == "<UserInfo id(2), gender(M), age(56), job(16)>"
    assert movielens.movie_info()[1].value() == [1, [0, 1], [3, 2]]
    rows = [[1, 1, 0, 10, 3, [1], [2, 1, 0], [5.0]], [2, 0, 6, 16, 1, [0, 1], [3, 2], [-3.0]]]
    assert list(movielens.train(test_ratio=0.0)()) == rows
    assert list(movielens.test(test_ratio=1.0)()) == rows
    state = numpy.random.get_state()[1].tolist()
    draws = numpy.random.RandomState(0).random_sample(2) < 0.6
    assert list(movielens.test(test_ratio=0.6)()) == [row for row, drawn in zip(rows, draws) if drawn]
    assert numpy.random.get_state()[1].tolist() == state


def test_conll05_reads_its_samples(dataset, tmp_path):
    words = b"The\ncat\nsat\nthere\n.\n\n"
    props = b"-\t(A0*\n-\t*)\nsit\t(V*)\n-\t(AM-LOC*)\n-\t*\n\n"
    place(
        tmp_path,
        "conll05st/conll05st-tests.tar.gz",
        tar_of(
            {
                "conll05st-release/test.wsj/words/test.wsj.words.gz": gzip.compress(words),
                "conll05st-release/test.wsj/props/test.wsj.props.gz": gzip.compress(props),
            }
        ),
    )
    place(tmp_path, "conll05st/conll05st%2FwordDict.txt", b"<unk>\nThe\ncat\nsat\nthere\nbos\n")
    place(tmp_path, "conll05st/conll05st%2FverbDict.txt", b"sit\n")
    place(tmp_path, "conll05st/conll05st%2FtargetDict.txt", b"B-V\nI-V\nB-A0\nI-A0\nB-AM-LOC\nO\n")
    assert dataset.conll05.get_dict()[2] == {
        "B-A0": 0,
        "I-A0": 1,
        "B-AM-LOC": 2,
        "I-AM-LOC": 3,
        "B-V": 4,
        "I-V": 5,
        "O": 6,
    }
    assert list(dataset.conll05.test()()) == [
        ([1, 2, 3, 4, 0], [1] * 5, [2] * 5, [3] * 5, [4] * 5, [0] * 5, [0] * 5, [1, 1, 1, 1, 1], [0, 1, 4, 2, 6])
    ]
    labels = dataset.conll05.labels_of(["(A0*", "*", "*)", "*", "(V*)"])
    assert labels == ["B-A0", "I-A0", "I-A0", "O", "B-V"]
    (sample,) = dataset.conll05.reader_creator(
        lambda: [(list("vwxyz"), "x", ["B-V", "O", "O", "O", "O"])], {"bos": 9, "w": 8}, {"x": 1}, {"O": 0, "B-V": 1}
    )()
    assert sample == (
        [0, 8, 0, 0, 0],
        [9] * 5,
        [9] * 5,
        [0] * 5,
        [8] * 5,
        [0] * 5,
        [1] * 5,
        [1, 1, 1, 0, 0],
        [1, 0, 0, 0, 0],
    )
    with pytest.raises(ValueError, match="conll05: 'x' is not a label"):
        dataset.conll05.labels_of(["x"])


def test_wmt14_reads_its_samples(dataset, tmp_path):
    long = " ".join(["a"] * 80)
    place(
        tmp_path,
        "wmt14/wmt14.tgz",
        tar_of(
            {
                "d/src.dict": b"<s>\n<e>\n<unk>\na\nb\n",
                "d/trg.dict": b"<s>\n<e>\n<unk>\nx\n",
                "d/train/train": (f"a b c\tx y\nno tab\n{long}\tx\n").encode(),
                "d/test/test": b"a\tx\n",
                "d/gen/gen": b"b\tx\n",
            }
        ),
    )
    assert list(dataset.wmt14.train(5)()) == [([0, 3, 4, 2, 1], [0, 3, 2], [3, 2, 1])]
    assert list(dataset.wmt14.train(4)()) == [([0, 3, 2, 2, 1], [0, 3, 2], [3, 2, 1])]
    assert list(dataset.wmt14.test(5)()) == [([0, 3, 1], [0, 3], [3, 1])]
    assert list(dataset.wmt14.gen(5)()) == [([0, 4, 1], [0, 3], [3, 1])]
    assert dataset.wmt14.get_dict(4)[0] == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "a"}
    assert dataset.wmt14.get_dict(4, reverse=False)[1] == {"<s>": 0, "<e>": 1, "<unk>": 2, "x": 3}


def test_wmt16_reads_its_samples(dataset, tmp_path):
    place(
        tmp_path,
        "wmt16/wmt16.tar.gz",
        tar_of({"wmt16/train": "a b b\tüb x\nno tab\n".encode(), "wmt16/test": b"b c\tx\n", "wmt16/val": b"a\tx\n"}),
    )
    assert list(dataset.wmt16.train(5, 4)()) == [([0, 4, 3, 3, 1], [0, 3, 2], [3, 2, 1])]
    assert list(dataset.wmt16.test(5, 5)()) == [([0, 3, 2, 1], [0, 4], [4, 1])]
    assert list(dataset.wmt16.validation(5, 5, src_lang="de")()) == [([0, 4, 1], [0, 4], [4, 1])]
    assert (tmp_path / "wmt16" / "de_5.dict").read_text(encoding="utf-8") == "<s>\n<e>\n<unk>\nüb\nx\n"
    (tmp_path / "wmt16" / "de_5.dict").write_text("<s>\n<e>\n<unk>\nx\ny\n")
    assert dataset.wmt16.get_dict("de", 5) == {"<s>": 0, "<e>": 1, "<unk>": 2, "x": 3, "y": 4}
    assert dataset.wmt16.get_dict("en", 4, reverse=True)[3] == "b"
    with pytest.raises(ValueError, match="src_lang must be 'en' or 'de', not 'fr'"):
        dataset.wmt16.train(5, 5, "fr")


def test_sentiment_reads_its_samples(dataset, tmp_path):
    place(
        tmp_path,
        "corpora/movie_reviews.zip",
        zip_of(
            {
                "movie_reviews/pos/b.txt": b"it's good . good\n",
                "movie_reviews/neg/a.txt": b"bad , bad , bad\n",
                "movie_reviews/README": b"x",
            }
        ),
    )
    assert dataset.sentiment.get_word_dict()[:3] == [("bad", 0), (",", 1), ("good", 2)]
    assert list(dataset.sentiment.train()) == [([0, 1, 0, 1, 0], 0), ([3, 4, 5, 2, 6, 2], 1)]
    assert list(dataset.sentiment.test()) == []


def test_mq2007_reads_its_samples(dataset, tmp_path):
    features = " ".join(f"{i + 1}:{i:g}" for i in range(46))
    lines = [
        f"{score} qid:{query} {features} #docid = {query}" for score, query in [(0, 7), (2, 7), (1, 7), (0, 8)]
    ] + ["1 qid:9 1:0 # short"]
    path = tmp_path / "MQ2007" / "MQ2007" / "MQ2007" / "Fold1"
    path.mkdir(parents=True)
    (path / "test.txt").write_text("\n".join(lines))
    test = dataset.mq2007.test
    assert [label.tolist() for label, _, _ in test()] == [[1], [1], [1]]
    scores, rows = next(test(format="listwise"))
    assert scores.tolist() == [[2], [1], [0]] and rows.shape == (3, 46) and rows[0, 45] == 45
    assert [score for score, _ in test(format="pointwise")] == [2]
    assert [(query, score) for query, score, _ in test(format="plain_txt")] == [(7, 2)]
    with pytest.raises(ValueError, match="format must be one of plain_txt, .* not 'x'"):
        next(test(format="x"))


def test_image_functions_transform_images(dataset, tmp_path, monkeypatch):
    image = dataset.image
    pixels = numpy.arange(4 * 6 * 3).reshape(4, 6, 3)
    numpy.testing.assert_array_equal(image.center_crop(pixels, 2), pixels[1:3, 2:4])
    numpy.testing.assert_array_equal(image.left_right_flip(pixels)[:, 0], pixels[:, 5])
    assert image.to_chw(pixels).shape == (3, 4, 6) and image.random_crop(pixels, 3).shape == (3, 3, 3)
    monkeypatch.setattr(image, "resize_short", lambda im, size: im)
    cut = image.simple_transform(pixels, 4, 2, False, mean=[1, 2, 3])
    numpy.testing.assert_array_equal(cut, pixels[1:3, 2:4].transpose(2, 0, 1) - [[[1]], [[2]], [[3]]])
    path = place(tmp_path, "x/x.tar", tar_of({"a.jpg": b"A", "b.jpg": b"B", "c.jpg": b"C"}, "w"))
    listed = image.batch_images_from_tar(str(path), "all", {"a.jpg": 1, "b.jpg": 2, "c.jpg": 3}, 2)
    batches = [pickle.loads(open(line.strip(), "rb").read()) for line in open(listed)]
    assert batches == [{"label": [1, 2], "data": [b"A", b"B"]}, {"label": [3], "data": [b"C"]}]
    assert image.batch_images_from_tar(str(path), "all", {}) == listed


def test_flowers_reads_its_samples(dataset, tmp_path, monkeypatch):
    from scipy.io import savemat

    def mat(name, **arrays):
        out = io.BytesIO()
        savemat(out, {key: numpy.array(value) for key, value in arrays.items()})
        place(tmp_path, "flowers/" + name, out.getvalue())

    place(
        tmp_path,
        "flowers/102flowers.tgz",
        tar_of({f"jpg/image_{number:05d}.jpg": b"%d" % number for number in range(1, 5)}),
    )
    mat("imagelabels.mat", labels=[[77, 1, 102, 5]])
    mat("setid.mat", tstid=[[1, 3]], trnid=[[4]], valid=[[2]])
    monkeypatch.setattr(dataset.image, "load_image_bytes", lambda data: numpy.full((256, 256, 3), int(data), "uint8"))
    monkeypatch.setattr(dataset.image, "resize_short", lambda im, size: im)
    mean = numpy.array([103.94, 116.78, 123.68], "float32")
    for read, wanted in (
        (dataset.flowers.train, {1: 76, 3: 101}),
        (dataset.flowers.test, {4: 4}),
        (dataset.flowers.valid, {2: 0}),
    ):
        samples = {int(round(float(pixels[0] + mean[0]))): (pixels, label) for pixels, label in read()()}
        assert {number: label for number, (_, label) in samples.items()} == wanted
        for number, (pixels, _) in samples.items():
            numpy.testing.assert_allclose(pixels, numpy.repeat(number - mean, 224 * 224), rtol=1e-5)
    endless = dataset.flowers.test(mapper=lambda sample: sample, use_xmap=False, cycle=True)()
    assert [next(endless) for _ in range(3)] == [(b"4", 4)] * 3


def test_voc2012_reads_its_samples(dataset, tmp_path):
    from PIL import Image

    def png(array):
        out = io.BytesIO()
        Image.fromarray(array).save(out, "png")  # Pillow looks at the bytes, not at the name
        return out.getvalue()

    image = numpy.arange(24, dtype="uint8").reshape(2, 4, 3)
    files = {
        f"ImageSets/Segmentation/{name}.txt": text
        for name, text in (("trainval", b"a\nb\n"), ("train", b"b\n"), ("val", b"a\n"))
    }
    for i, name in enumerate("ab"):
        files[f"JPEGImages/{name}.jpg"] = png(image + i)
        files[f"SegmentationClass/{name}.png"] = png(image[:, :, 0] + i)
    place(
        tmp_path,
        "voc2012/VOCtrainval_11-May-2012.tar",
        tar_of({"VOCdevkit/VOC2012/" + name: data for name, data in files.items()}, "w"),
    )
    for read, wanted in ((dataset.voc2012.train, [0, 1]), (dataset.voc2012.test, [1]), (dataset.voc2012.val, [0])):
        samples = list(read()())
        assert len(samples) == len(wanted)
        for (pixels, classes), i in zip(samples, wanted):
            numpy.testing.assert_array_equal(pixels, image + i)
            numpy.testing.assert_array_equal(classes, image[:, :, 0] + i)


def test_sample_files_are_divided_among_trainers(dataset, tmp_path):
    dataset.common.split(lambda: iter(range(7)), 3, str(tmp_path / "part-%d"))
    shares = [list(dataset.common.cluster_files_reader(str(tmp_path / "part-*"), 2, trainer)()) for trainer in (0, 1)]
    assert shares == [[0, 1, 2, 6], [3, 4, 5]]
    mixed = [(numpy.ones(2, "float32"), numpy.int64(3), "text"), [b"bytes", None, True]]
    dataset.common.split(lambda: iter(mixed), 3, str(tmp_path / "mixed-%d"))
    read = list(dataset.common.cluster_files_reader(str(tmp_path / "mixed-*"), 1, 0)())
    numpy.testing.assert_array_equal(read[0][0], mixed[0][0])
    assert (read[0][1:], read[1]) == (mixed[0][1:], mixed[1]) and type(read[0][1]) is numpy.int64
    with pytest.raises(TypeError, match="dumper must be callable"):
        dataset.common.split(list, 3, dumper=1)


class _Evil:
    """A pickle of it executes code when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_files_of_samples_execute_no_code(dataset, tmp_path):
    path = tmp_path / "part-0"
    path.write_bytes(pickle.dumps([_Evil(str(tmp_path / "executed"))]))
    with pytest.raises(ValueError, match="part-0 holds .*open"):
        list(dataset.common.cluster_files_reader(str(tmp_path / "part-*"), 1, 0)())
    assert not (tmp_path / "executed").exists()
    list(dataset.common.cluster_files_reader(str(tmp_path / "part-*"), 1, 0, loader=pickle.load)())
    assert (tmp_path / "executed").exists()  # the caller trusts these files


def test_packed_flowers_execute_no_code(dataset, tmp_path, monkeypatch):
    evil = tmp_path / "batch_0"
    evil.write_bytes(pickle.dumps({"data": [_Evil(str(tmp_path / "executed"))], "label": [1]}))
    (tmp_path / "listed").write_text(f"{evil}\n")
    pytest.importorskip("scipy")
    monkeypatch.setattr(dataset.flowers.image, "batch_images_from_tar", lambda *_: str(tmp_path / "listed"))
    monkeypatch.setattr("scipy.io.loadmat", lambda _: {"labels": [[1]], "tstid": [[1]]})
    read = dataset.flowers.reader_creator("", "", "", "tstid", lambda sample: sample, use_xmap=False)
    with pytest.raises(ValueError, match="batch_0 holds"):
        list(read())
    assert not (tmp_path / "executed").exists()
