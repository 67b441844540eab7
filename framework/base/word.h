// An interned string, for texts that repeat often: op types, names of slots and attributes, passes. A Word is
// one pointer; equal Words almost always share it.
//
//   Word slot("ParamOut");
//   slot == "ParamOut", slot.str(), StrCat(slot)     as a std::string
//
// The first few thousand texts that a process interns are kept for its lifetime, so a program of any size
// stores each of them once. Later texts, and long ones, are reference-counted: a file full of made-up names
// is freed with its Words. Thread-safe.

#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace penstock {

class Word {
 public:
  Word() = default;            // the empty text
  Word(std::string_view text)  // NOLINT(google-explicit-constructor)
      : entry_(text.empty() ? nullptr : Find(text)) {}
  Word(const std::string& text) : Word(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  Word(const char* text) : Word(std::string_view(text)) {}         // NOLINT(google-explicit-constructor)
  // Makes a Word of a text that seldom repeats, such as a place in the user's script. It is not interned;
  // only copies of the Word share the text.
  static Word Rare(std::string_view text);
  Word(const Word& other) : entry_(other.entry_) { Hold(); }
  Word(Word&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Word& operator=(const Word& other) {
    Word copy(other);
    std::swap(entry_, copy.entry_);
    return *this;
  }
  Word& operator=(Word&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~Word() { Release(); }

  const std::string& str() const { return entry_ == nullptr ? Nothing() : entry_->text; }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  const std::string& ToString() const { return str(); }  // for StrCat
  bool empty() const { return entry_ == nullptr; }
  void clear() { *this = Word(); }

  friend bool operator==(const Word& a, const Word& b) {
    if (a.entry_ == b.entry_) return true;
    const bool both_kept = (a.entry_ == nullptr || a.entry_->kept) && (b.entry_ == nullptr || b.entry_->kept);
    return !both_kept && a.str() == b.str();
  }
  friend bool operator==(const Word& a, std::string_view b) { return a.str() == b; }
  friend bool operator==(const Word& a, const std::string& b) { return a.str() == b; }
  friend bool operator==(const Word& a, const char* b) { return a.str() == b; }
  friend std::strong_ordering operator<=>(const Word& a, const Word& b) { return a.str() <=> b.str(); }
  friend std::ostream& operator<<(std::ostream& out, const Word& word) { return out << word.str(); }

 private:
  friend class WordTable;
  struct Entry {
    std::string text;
    bool kept = false;                    // interned, and never freed
    std::atomic<std::uint32_t> words{1};  // reference count; unused if kept
  };

  static Entry* Find(std::string_view text);
  static Entry* Make(std::string_view text);
  static const std::string& Nothing();
  void Hold() const {
    if (entry_ != nullptr && !entry_->kept) entry_->words.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() const {
    if (entry_ != nullptr && !entry_->kept && entry_->words.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete entry_;
  }

  Entry* entry_ = nullptr;
};

}  // namespace penstock
