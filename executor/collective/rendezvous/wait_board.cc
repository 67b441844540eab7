#include "executor/collective/rendezvous/wait_board.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace penstock::rendezvous {
namespace {

constexpr std::size_t kOperationsNamedMax = 4;  // operations in an error

bool SameOperation(const WaitedOperation& a, const WaitedOperation& b) {
  return a.ring == b.ring && a.number == b.number;
}

template <typename Int>
bool ReadNumber(std::string_view& text, Int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() + text.size() || *end != ' ') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

WaitBoard::WaitBoard(WaitBoardOptions options)
    : options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : SystemClock()),
      since_(clock_.Now()) {}

std::string WaitBoard::Key(int rank) { return StrCat("waits/", rank); }

Status WaitBoard::Open() { return options_.set(Key(options_.rank), ""); }

// Writes a line "epoch beat ", then a line for each operation: "ring number text".
std::string WaitBoard::Encode(const Word& word) {
  std::string out = StrCat(word.epoch, " ", word.beat, " \n");
  for (const WaitedOperation& one : word.waits) {
    std::string text = one.text;
    std::replace(text.begin(), text.end(), '\n', ' ');
    out += StrCat(one.ring, " ", one.number, " ", text, "\n");
  }
  return out;
}

std::optional<WaitBoard::Word> WaitBoard::Decode(const std::string& text) {
  Word word;
  bool first = true;
  for (const std::string& line : Split(text, '\n')) {
    std::string_view rest = line;
    if (rest.empty()) continue;
    if (std::exchange(first, false)) {
      if (!ReadNumber(rest, word.epoch) || !ReadNumber(rest, word.beat)) return std::nullopt;
      continue;
    }
    WaitedOperation& one = word.waits.emplace_back();
    if (!ReadNumber(rest, one.ring) || !ReadNumber(rest, one.number)) return std::nullopt;
    one.text = rest;
  }
  if (word.waits.empty()) return std::nullopt;  // the rank waits for nothing
  return word;
}

bool WaitBoard::Changed(const std::vector<WaitedOperation>& waits) const {
  return waits.empty() ||
         !std::equal(waits.begin(), waits.end(), own_.waits.begin(), own_.waits.end(), SameOperation);
}

std::optional<std::vector<WaitBoard::Word>> WaitBoard::ReadAll() const {
  std::vector<Word> words;
  for (int rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.rank) {
      words.push_back(own_);
      continue;
    }
    const Result<std::string> text = options_.get(Key(rank));
    std::optional<Word> word = text.ok() ? Decode(*text) : std::nullopt;
    if (!word) return std::nullopt;
    words.push_back(*std::move(word));
  }
  return words;
}

std::optional<Status> WaitBoard::Look(const std::vector<WaitedOperation>& waits) {
  const Nanoseconds now = clock_.Now();
  if (Changed(waits)) {
    if (std::exchange(told_, false)) static_cast<void>(options_.set(Key(options_.rank), ""));
    own_ = {.epoch = own_.epoch + 1, .beat = own_.beat, .waits = waits};
    since_ = now;
    stage_ = Stage::kNothing;
    return std::nullopt;
  }
  if (now - since_ < options_.after) return std::nullopt;
  ++own_.beat;
  told_ = true;
  if (!options_.set(Key(options_.rank), Encode(own_)).ok()) return std::nullopt;

  std::optional<std::vector<Word>> words = ReadAll();
  const Stage stage = std::exchange(stage_, Stage::kNothing);
  if (!words) return std::nullopt;
  const auto all = [&](const auto& holds) {
    return std::equal(words->begin(), words->end(), before_.begin(), before_.end(), holds);
  };
  const bool same =
      stage != Stage::kNothing && all([](const Word& a, const Word& b) { return a.epoch == b.epoch; });
  if (!same || stage == Stage::kAllWait) {
    stage_ = same ? Stage::kBase : Stage::kAllWait;
    before_ = *std::move(words);
    return std::nullopt;
  }
  stage_ = Stage::kBase;
  if (!all([](const Word& a, const Word& b) { return a.beat > b.beat; })) return std::nullopt;
  Status vain = InVain(*words);
  if (vain.ok()) return std::nullopt;
  return vain;
}

// Returns ok if all ranks are in one operation: it will proceed, however long it takes.
Status WaitBoard::InVain(const std::vector<Word>& words) const {
  for (const WaitedOperation& one : words.front().waits) {
    const bool everywhere = std::all_of(words.begin(), words.end(), [&](const Word& word) {
      return std::any_of(word.waits.begin(), word.waits.end(),
                         [&](const WaitedOperation& other) { return SameOperation(one, other); });
    });
    if (everywhere) return OkStatus();
  }
  // Each operation with the first rank that waits in it.
  struct Named {
    std::size_t rank = 0, others = 0;
  };
  std::vector<Named> named;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    const auto known = std::find_if(named.begin(), named.end(), [&](const Named& one) {
      return SameOperation(words[one.rank].waits.front(), words[rank].waits.front());
    });
    if (known != named.end()) {
      ++known->others;
    } else if (named.size() < kOperationsNamedMax) {
      named.push_back({.rank = rank});
    }
  }
  std::vector<std::string> lines;
  for (const Named& one : named) {
    const WaitedOperation& what = words[one.rank].waits.front();
    const std::string others = one.others == 0 ? "" : StrCat(" and ", one.others, " more");
    lines.push_back(StrCat("rank ", one.rank, others, ": ", what.text, " on ring ", what.ring));
  }
  return InvalidArgument("E-collective-mismatch",
                         "all ranks wait for each other, and no operation has them all: ", Join(lines, "; "));
}

}  // namespace penstock::rendezvous
