#include "tests/parity/transpile/python_hash.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

namespace penstock::test {
namespace {

// SipHash-2-4 with a key of zeros.
class SipHash {
 public:
  void Add(std::uint64_t word) {
    v3_ ^= word;
    Rounds(2);
    v0_ ^= word;
  }
  std::uint64_t Finish() {
    v2_ ^= 0xff;
    Rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0_ += v1_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v3_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_ = 0x736f6d6570736575, v1_ = 0x646f72616e646f6d;
  std::uint64_t v2_ = 0x6c7967656e657261, v3_ = 0x7465646279746573;
};

// hash(text) of ASCII.
std::int64_t PythonHash(std::string_view text) {
  SipHash hash;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << 8 * (i % 8);
    if (i % 8 != 7) continue;
    hash.Add(word);
    word = 0;
  }
  hash.Add(word | static_cast<std::uint64_t>(text.size()) << 56);
  const auto value = static_cast<std::int64_t>(hash.Finish());
  return value == -1 ? -2 : value;
}

class ByPythonHash : public plan::Dispatcher {
 public:
  explicit ByPythonHash(std::vector<std::string> pservers) : pservers_(std::move(pservers)) {}

  Result<std::vector<std::string>> Dispatch(const std::vector<plan::Piece>& pieces) override {
    const auto count = static_cast<std::int64_t>(pservers_.size());
    std::vector<std::string> chosen;
    for (const plan::Piece& piece : pieces) {
      const std::int64_t remainder = PythonHash(piece.name) % count;  // Python's is never negative
      chosen.push_back(pservers_[static_cast<std::size_t>(remainder < 0 ? remainder + count : remainder)]);
    }
    return chosen;
  }
  Status Reset() override { return OkStatus(); }

 private:
  std::vector<std::string> pservers_;
};

}  // namespace

plan::DispatcherFactory PythonHashDispatchers() {
  return [](const std::vector<std::string>& pservers) -> Result<std::unique_ptr<plan::Dispatcher>> {
    return std::unique_ptr<plan::Dispatcher>(new ByPythonHash(pservers));
  };
}

}  // namespace penstock::test
