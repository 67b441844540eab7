"""Film ratings. A sample is [user id, 0 (male) or 1, age group, job, film id, ids of its categories, ids of the words
of its title, [rating from -3 to 5]]."""

import functools
import re
import zipfile

import numpy

from paddle.dataset import common

__all__ = [
    "age_table",
    "get_movie_title_dict",
    "max_job_id",
    "max_movie_id",
    "max_user_id",
    "movie_categories",
    "movie_info",
    "test",
    "train",
    "user_info",
]

age_table = [1, 18, 25, 35, 45, 50, 56]
URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"


class MovieInfo:
    """A film: index, categories and title."""

    def __init__(self, index, categories, title):
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self):
        """Returns [index, ids of the categories, ids of the title's words]."""
        about = _about()
        return [
            self.index,
            [about.categories[name] for name in self.categories],
            [about.titles[word.lower()] for word in self.title.split()],
        ]

    def __repr__(self):
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    """A user: index, is_male, age (an index of age_table) and job_id."""

    def __init__(self, index, gender, age, job_id):
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self):
        """Returns [index, 0 (male) or 1, age group, job]."""
        return [self.index, 0 if self.is_male else 1, self.age, self.job_id]

    def __repr__(self):
        return (
            f"<UserInfo id({self.index}), gender({'M' if self.is_male else 'F'}), age({age_table[self.age]}), "
            f"job({self.job_id})>"
        )


class _About:
    """The films and users in the files. Words and categories are numbered in alphabetical order."""

    def __init__(self, path):
        self.path = path
        self.movies, self.users = {}, {}
        for movie, title, categories in self.lines("movies"):
            title = re.match(r"^(.*)\((\d+)\)$", title).group(1)
            self.movies[int(movie)] = MovieInfo(movie, categories.split("|"), title)
        for user, gender, age, job, _ in self.lines("users"):
            self.users[int(user)] = UserInfo(user, gender, age, job)
        self.categories = _numbered(name for movie in self.movies.values() for name in movie.categories)
        self.titles = _numbered(word.lower() for movie in self.movies.values() for word in movie.title.split())

    def lines(self, name):
        """Yields the fields of each line of a file in the archive."""
        with zipfile.ZipFile(self.path) as package, package.open(f"ml-1m/{name}.dat") as file:
            for line in file:
                yield line.decode("latin1").strip().split("::")


def _numbered(names):
    return {name: id for id, name in enumerate(sorted(set(names)))}


@functools.lru_cache(maxsize=1)
def _read(path):
    return _About(path)


def _about():
    return _read(common.download(URL, "movielens", MD5))


def _samples(rand_seed, test_ratio, is_test):
    about, random = _about(), numpy.random.RandomState(rand_seed)
    for user, movie, rating, _ in about.lines("ratings"):
        if (random.random_sample() < test_ratio) == is_test:
            yield about.users[int(user)].value() + about.movies[int(movie)].value() + [[float(rating) * 2 - 5.0]]


def train(rand_seed=0, test_ratio=0.1):
    """Returns a reader of the training ratings; test ratings are drawn at random, with `rand_seed`."""
    _about()
    return lambda: _samples(rand_seed, test_ratio, False)


def test(rand_seed=0, test_ratio=0.1):
    """Returns a reader of the test ratings, which are a share of test_ratio of all ratings."""
    _about()
    return lambda: _samples(rand_seed, test_ratio, True)


def get_movie_title_dict():
    """Returns {word of a title: id}."""
    return _about().titles


def movie_categories():
    """Returns {category: id}."""
    return _about().categories


def max_movie_id():
    """Returns the largest index of a film."""
    return max(_about().movies)


def max_user_id():
    """Returns the largest index of a user."""
    return max(_about().users)


def max_job_id():
    """Returns the largest job of a user."""
    return max(user.job_id for user in _about().users.values())


def user_info():
    """Returns {index: UserInfo}."""
    return _about().users


def movie_info():
    """Returns {index: MovieInfo}."""
    return _about().movies


def fetch():
    """Raises FileNotFoundError if a file of the data set is missing; Fluid downloads it."""
    common.download(URL, "movielens", MD5)
