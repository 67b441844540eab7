#include "tools/diff/common_subsequence.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace penstock::tools {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;
using Position = std::ptrdiff_t;

// A line as a number (equal lines have equal numbers), and its position in the whole sequence.
struct Element {
  int number = 0;
  std::size_t at = 0;
};
using Elements = std::vector<Element>;

// Positions [left, right) of the first sequence and [top, bottom) of the second.
struct Box {
  Position left = 0, right = 0, top = 0, bottom = 0;
  Position wider() const { return (right - left) - (bottom - top); }
};

// The linear-space variant of Myers' algorithm: finds the middle snake of a shortest edit path from the top
// left to the bottom right corner of a box, then recurses into the boxes before and after it.
class Path {
 public:
  Path(const Elements& a, const Elements& b)
      : a_(a),
        b_(b),
        middle_(static_cast<Position>(a.size() + b.size()) + 1),
        forward_(static_cast<std::size_t>(2 * middle_ + 1)),
        backward_(forward_.size()) {}

  std::vector<Pair> Pairs() {
    Walk({0, static_cast<Position>(a_.size()), 0, static_cast<Position>(b_.size())});
    return std::move(pairs_);
  }

 private:
  // The furthest x that a forward path has reached on a diagonal, counted from the top left corner.
  Position& Forward(Position diagonal) { return forward_[static_cast<std::size_t>(middle_ + diagonal)]; }
  // The furthest y that a backward path has reached on a diagonal, counted from the bottom right corner.
  Position& Backward(Position diagonal) { return backward_[static_cast<std::size_t>(middle_ + diagonal)]; }

  bool Equal(Position x, Position y) const {
    return a_[static_cast<std::size_t>(x)].number == b_[static_cast<std::size_t>(y)].number;
  }

  void Walk(const Box& box) {
    if (box.left == box.right || box.top == box.bottom) return;
    const Box middle = Middle(box);
    Walk({box.left, middle.left, box.top, middle.top});
    Follow(middle);
    Walk({middle.right, box.right, middle.bottom, box.bottom});
  }

  // Adds the pairs of a snake: at most one deletion or insertion, with equal elements on either side of it.
  void Follow(const Box& snake) {
    Position x = snake.left, y = snake.top;
    const auto along = [&] {
      for (; x < snake.right && y < snake.bottom && Equal(x, y); ++x, ++y) {
        pairs_.emplace_back(a_[static_cast<std::size_t>(x)].at, b_[static_cast<std::size_t>(y)].at);
      }
    };
    along();
    const Position wider = (snake.right - x) - (snake.bottom - y);
    if (wider > 0) ++x;
    if (wider < 0) ++y;
    along();
  }

  Box Middle(const Box& box) {
    Forward(1) = box.left;
    Backward(1) = box.bottom;
    const bool odd = box.wider() % 2 != 0;
    for (Position steps = 0;; ++steps) {
      if (const auto snake = Advance(box, steps, odd)) return *snake;
      if (const auto snake = Return(box, steps, odd)) return *snake;
    }
  }

  // Extends the forward paths to `steps` edits; returns the last snake if it meets a backward path.
  std::optional<Box> Advance(const Box& box, Position steps, bool odd) {
    for (Position k = steps; k >= -steps; k -= 2) {
      const bool down = k == -steps || (k != steps && Forward(k - 1) < Forward(k + 1));
      const Position from = down ? Forward(k + 1) : Forward(k - 1);
      Position x = down ? from : from + 1;
      Position y = box.top + (x - box.left) - k;
      const Position from_y = steps == 0 || x != from ? y : y - 1;
      while (x < box.right && y < box.bottom && Equal(x, y)) ++x, ++y;
      Forward(k) = x;
      const Position other = k - box.wider();
      if (odd && std::abs(other) <= steps - 1 && y >= Backward(other)) return Box{from, x, from_y, y};
    }
    return std::nullopt;
  }

  std::optional<Box> Return(const Box& box, Position steps, bool odd) {
    for (Position c = steps; c >= -steps; c -= 2) {
      const Position k = c + box.wider();
      const bool left = c == -steps || (c != steps && Backward(c - 1) > Backward(c + 1));
      const Position from = left ? Backward(c + 1) : Backward(c - 1);
      Position y = left ? from : from - 1;
      Position x = box.left + (y - box.top) + k;
      const Position from_x = steps == 0 || y != from ? x : x + 1;
      while (x > box.left && y > box.top && Equal(x - 1, y - 1)) --x, --y;
      Backward(c) = y;
      if (!odd && std::abs(k) <= steps && x <= Forward(k)) return Box{x, from_x, y, from};
    }
    return std::nullopt;
  }

  const Elements& a_;
  const Elements& b_;
  const Position middle_;
  std::vector<Position> forward_, backward_;
  std::vector<Pair> pairs_;
};

// The lines in [head, size - tail) that also occur in the other sequence.
Elements Shared(const std::vector<std::string>& lines, std::size_t head, std::size_t tail,
                const std::unordered_map<std::string_view, int>& shared) {
  Elements out;
  for (std::size_t i = head; i < lines.size() - tail; ++i) {
    const auto known = shared.find(lines[i]);
    if (known != shared.end()) out.push_back({known->second, i});
  }
  return out;
}

}  // namespace

std::vector<Pair> CommonSubsequence(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  std::unordered_map<std::string_view, int> of_a, shared;
  for (std::size_t i = head; i < a.size() - tail; ++i) of_a.emplace(a[i], static_cast<int>(of_a.size()));
  for (std::size_t j = head; j < b.size() - tail; ++j) {
    if (const auto known = of_a.find(b[j]); known != of_a.end()) shared.insert(*known);
  }
  const Elements left = Shared(a, head, tail, shared), right = Shared(b, head, tail, shared);
  std::vector<Pair> all;
  for (std::size_t i = 0; i < head; ++i) all.emplace_back(i, i);
  const std::vector<Pair> middle = Path(left, right).Pairs();
  all.insert(all.end(), middle.begin(), middle.end());
  for (std::size_t i = tail; i > 0; --i) all.emplace_back(a.size() - i, b.size() - i);
  return all;
}

}  // namespace penstock::tools
