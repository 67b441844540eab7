#include "framework/base/word.h"

#include <array>
#include <cstring>

namespace penstock {

// The words that are kept for the life of the process: an open-addressing table that only grows. Readers and
// writers take no lock.
class WordTable {
 public:
  // Finds or adds the text. Null if it is absent and there is no room for it.
  Word::Entry* Find(std::string_view text) {
    const std::size_t begin = HashOf(text);
    Word::Entry* made = nullptr;
    for (std::size_t i = 0; i < kReach; ++i) {
      std::atomic<Word::Entry*>& place = places_[(begin + i) % kPlaces];
      Word::Entry* there = place.load(std::memory_order_acquire);
      if (there == nullptr) {
        if (made == nullptr) {
          made = Word::Make(text);
          made->kept = true;
        }
        // If another thread filled the place first, `there` is now its entry.
        if (place.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
      }
      if (there->text == text) {
        delete made;
        return there;
      }
    }
    delete made;
    return nullptr;
  }

 private:
  // Hashes only the first and last eight bytes and the length: most words that differ, differ there.
  static std::size_t HashOf(std::string_view text) {
    const bool eight = text.size() >= sizeof(std::uint64_t);
    const std::uint64_t first = eight ? Load<std::uint64_t>(text, 0) : Short(text);
    const std::uint64_t last = eight ? Load<std::uint64_t>(text, text.size() - sizeof(last)) : text.size();
    const std::uint64_t hash = (first ^ (last * 0x9e3779b97f4a7c15) ^ text.size()) * 0xff51afd7ed558ccd;
    return static_cast<std::size_t>(hash >> 40);
  }
  static std::uint64_t Short(std::string_view text) {  // of 1 to 7 bytes
    if (text.size() < 4) {
      return Load<std::uint8_t>(text, 0) | Load<std::uint8_t>(text, text.size() / 2) << 8 |
             Load<std::uint8_t>(text, text.size() - 1) << 16;
    }
    return Load<std::uint32_t>(text, 0) |
           static_cast<std::uint64_t>(Load<std::uint32_t>(text, text.size() - 4)) << 32;
  }
  template <typename T>
  static T Load(std::string_view text, std::size_t at) {
    T value;
    std::memcpy(&value, text.data() + at, sizeof(value));
    return value;
  }

  static constexpr std::size_t kPlaces = 8192;
  static constexpr std::size_t kReach = 8;  // places tried per look-up, so that a full table costs little
  std::array<std::atomic<Word::Entry*>, kPlaces> places_ = {};
};

namespace {
constexpr std::size_t kLongestKept = 64;
constinit WordTable kept_words;
}  // namespace

Word::Entry* Word::Find(std::string_view text) {
  Entry* kept = text.size() > kLongestKept ? nullptr : kept_words.Find(text);
  return kept != nullptr ? kept : Make(text);
}

Word::Entry* Word::Make(std::string_view text) {
  auto* entry = new Entry;
  entry->text = text;
  return entry;
}

Word Word::Rare(std::string_view text) {
  Word word;
  if (!text.empty()) word.entry_ = Make(text);
  return word;
}

const std::string& Word::Nothing() {
  static const std::string nothing;
  return nothing;
}

}  // namespace penstock
