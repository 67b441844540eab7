// The arguments of a slot: names of variables. Like std::vector<std::string>, but a single name, the usual
// case, is stored inline without an allocation.
//
//   ArgList args = {"x"};
//   args.front(), args[0], args.size(), for (const std::string& name : args)
//   const std::vector<std::string> names(args);       a copy
// A function that only reads arguments takes std::span<const std::string>; both types convert to it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace penstock {

class ArgList {
 public:
  using value_type = std::string;
  using iterator = std::string*;
  using const_iterator = const std::string*;

  ArgList() = default;
  ArgList(std::initializer_list<std::string> names) {
    reserve(names.size());
    for (const std::string& name : names) push_back(name);
  }
  ArgList(std::vector<std::string> names) {  // NOLINT(google-explicit-constructor)
    if (names.size() == 1) {
      names_ = std::move(names.front());
    } else {
      names_ = std::move(names);
    }
  }
  explicit operator std::vector<std::string>() const { return {begin(), end()}; }

  std::string* data() { return const_cast<std::string*>(std::as_const(*this).data()); }
  const std::string* data() const {
    const std::string* one = std::get_if<std::string>(&names_);
    return one != nullptr ? one : std::get_if<Many>(&names_)->data();
  }
  std::size_t size() const {
    const Many* many = std::get_if<Many>(&names_);
    return many == nullptr ? 1 : many->size();
  }
  bool empty() const { return size() == 0; }
  iterator begin() { return data(); }
  iterator end() { return data() + size(); }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size(); }
  // The argument must exist.
  std::string& operator[](std::size_t i) { return data()[i]; }
  const std::string& operator[](std::size_t i) const { return data()[i]; }
  const std::string& front() const { return *data(); }
  const std::string& back() const { return data()[size() - 1]; }

  void reserve(std::size_t count) {
    if (count > 1) AsMany().reserve(count);
  }
  void push_back(std::string name) {
    if (Many* many = std::get_if<Many>(&names_); many != nullptr && many->capacity() == 0) {
      names_ = std::move(name);
    } else {
      AsMany().push_back(std::move(name));
    }
  }

  friend bool operator==(const ArgList& a, const ArgList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  using Many = std::vector<std::string>;
  Many& AsMany() {
    if (std::string* one = std::get_if<std::string>(&names_)) {
      Many many;
      many.push_back(std::move(*one));
      names_ = std::move(many);
    }
    return *std::get_if<Many>(&names_);
  }

  std::variant<Many, std::string> names_;  // Many holds a single name only while it grows
};

}  // namespace penstock
