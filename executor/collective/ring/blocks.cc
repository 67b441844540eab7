#include "executor/collective/ring/blocks.h"

#include <cstring>

#include "executor/collective/group/plain_data.h"
#include "framework/base/check.h"

namespace penstock::collective {
namespace {

constexpr std::size_t kAlignment = 8;  // of the widest element

}  // namespace

Blocks::Blocks(int ranks, std::size_t most_data)
    : most_blocks_(static_cast<std::size_t>(ranks)),
      most_data_(most_data),
      memory_(std::make_unique_for_overwrite<std::byte[]>(most_blocks_ * most_bytes())) {
  begins_.reserve(most_blocks_);
}

std::size_t Blocks::BytesOf(std::size_t data_bytes) {
  static_assert(sizeof(Head) % kAlignment == 0);
  return sizeof(Head) + (data_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void Blocks::Add(const Signature& what, std::span<const std::byte> data) {
  PENSTOCK_CHECK(size() < most_blocks_ && data.size() <= most_data_, "more than blocks have room for");
  const std::size_t begin = begins_.empty() ? 0 : end_;
  const Head head{.data_bytes = data.size(), .what = what};
  std::memcpy(memory_.get() + begin, &head, sizeof(head));
  CopyBytes(memory_.get() + begin + sizeof(head), data.data(), data.size());
  begins_.push_back(begin);
  end_ = begin + BytesOf(data.size());
}

bool Blocks::AddFrom(std::span<const std::byte> message, std::size_t count) {
  for (std::size_t block = 0; block < count; ++block) {
    Head head;
    if (message.size() < sizeof(head) || size() == most_blocks_) return false;
    std::memcpy(&head, message.data(), sizeof(head));
    if (head.data_bytes > most_data_ || BytesOf(head.data_bytes) > message.size()) return false;
    Add(head.what, message.subspan(sizeof(head), head.data_bytes));
    message = message.subspan(BytesOf(head.data_bytes));
  }
  return true;
}

std::span<const std::byte> Blocks::First(std::size_t count) const {
  return {memory_.get(), count == size() ? end_ : begins_[count]};
}

Blocks::Head Blocks::head(std::size_t block) const {
  Head head;
  std::memcpy(&head, memory_.get() + begins_[block], sizeof(head));
  return head;
}

Signature Blocks::signature(std::size_t block) const { return head(block).what; }

std::span<const std::byte> Blocks::data(std::size_t block) const {
  return {memory_.get() + begins_[block] + sizeof(Head), head(block).data_bytes};
}

}  // namespace penstock::collective
