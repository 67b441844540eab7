"""Documents ranked for queries (LETOR 4.0). Fluid unpacks a .rar archive; here it must have been unpacked already."""

import functools
import os

import numpy

from paddle.dataset import common

__all__ = ["test", "train"]

URL = "http://www.bigdatalab.ac.cn/benchmark/upload/download_source/7b6dbbe2-842c-11e4-a536-bcaec51b9163_MQ2007.rar"
_FEATURES = 46


class Query:
    """One document for a query: query_id, relevance_score, feature_vector and description."""

    def __init__(self, query_id=-1, relevance_score=-1, feature_vector=None, description=""):
        self.query_id = query_id
        self.relevance_score = relevance_score
        self.feature_vector = [] if feature_vector is None else feature_vector
        self.description = description

    def __str__(self):
        return f"{self.relevance_score} {self.query_id} {' '.join(map(str, self.feature_vector))}"


class QueryList:
    """The documents of one query."""

    def __init__(self, querylist=None):
        self.query_id, self.querylist = -1, []
        for query in querylist or ():
            self._add_query(query)

    def __iter__(self):
        return iter(self.querylist)

    def __len__(self):
        return len(self.querylist)

    def __getitem__(self, index):
        return self.querylist[index]

    def _correct_ranking_(self):
        self.querylist.sort(key=lambda query: query.relevance_score, reverse=True)

    def _add_query(self, query):
        if self.query_id not in (-1, query.query_id):
            raise ValueError(f"QueryList: a document of query {query.query_id} among those of query {self.query_id}")
        self.query_id = query.query_id
        self.querylist.append(query)


def _ranked(querylist):
    """Returns the documents with their features as arrays, the most relevant first."""
    querylist = querylist if isinstance(querylist, QueryList) else QueryList(querylist)
    querylist._correct_ranking_()
    return [(query.relevance_score, numpy.array(query.feature_vector)) for query in querylist]


def gen_plain_txt(querylist):
    """Yields (query id, relevance, features) of each document."""
    for score, features in _ranked(querylist):
        yield querylist[0].query_id, score, features


def gen_point(querylist):
    """Yields (relevance, features) of each document."""
    yield from _ranked(querylist)


def gen_pair(querylist, partial_order="full"):
    """Yields ([1], features of the more relevant, features of the less relevant) of each pair of documents that differ
    in relevance."""
    ranked = _ranked(querylist)
    for index, (score, features) in enumerate(ranked):
        for lower, others in ranked[index + 1 :]:
            if lower < score:
                yield numpy.array([1]), features, others


def gen_list(querylist):
    """Yields one pair (relevances [n, 1], features [n, 46]) of all documents."""
    ranked = _ranked(querylist)
    yield numpy.array([[score] for score, _ in ranked]), numpy.array([features for _, features in ranked])


def query_filter(querylists):
    """Returns the lists that contain a relevant document."""
    return [querylist for querylist in querylists if any(query.relevance_score for query in querylist)]


def _parse(line):
    """Parses a line such as `2 qid:10 1:0.03 ... 46:0.1 #docid = ...`; returns None if it does not have 46 features."""
    fields, _, description = line.partition("#")
    score, query, *features = fields.split() or ("", "")
    if len(features) != _FEATURES:
        return None
    return Query(
        int(query.split(":")[1]), int(score), [float(one.split(":")[1]) for one in features], description.strip()
    )


def load_from_text(filepath, shuffle=False, fill_missing=-1):
    """Returns the QueryLists of a file; filepath is relative to DATA_HOME/MQ2007.

    Raises:
        FileNotFoundError: the archive has not been unpacked there.
    """
    path = os.path.join(common.DATA_HOME, "MQ2007", filepath)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"paddle.dataset: {path} is missing, and nothing is downloaded here; get {URL} and unpack it in "
            f"{os.path.join(common.DATA_HOME, 'MQ2007')}   [E-dataset-missing]"
        )
    lists = []
    with open(path) as file:
        for query in filter(None, map(_parse, file)):
            if not lists or lists[-1].query_id != query.query_id:
                lists.append(QueryList())
            lists[-1]._add_query(query)
    return lists


_FORMATS = {"plain_txt": gen_plain_txt, "pointwise": gen_point, "pairwise": gen_pair, "listwise": gen_list}


def _samples(filepath, format="pairwise", shuffle=False, fill_missing=-1):
    if format not in _FORMATS:
        raise ValueError(f"mq2007: format must be one of {', '.join(_FORMATS)}, not {format!r}")
    for querylist in query_filter(load_from_text(filepath, shuffle, fill_missing)):
        samples = _FORMATS[format](querylist)
        if format in ("plain_txt", "pointwise"):  # as in Fluid: only the first document of each query
            yield next(samples)
        else:
            yield from samples


train = functools.partial(_samples, filepath="MQ2007/MQ2007/Fold1/train.txt")
test = functools.partial(_samples, filepath="MQ2007/MQ2007/Fold1/test.txt")
