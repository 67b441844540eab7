#include "executor/protocol/fluid_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "executor/protocol/piece_stream.h"

namespace penstock::protocol {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr std::size_t kMessageBytesMax = std::numeric_limits<std::int32_t>::max();
// Limits the description: everything except values and row numbers. Fluid 1.8.5 never sends more than its
// buffer of 1024 bytes. A limit is needed because a number takes many times more bytes in memory than in a
// message.
constexpr std::size_t kDescriptionBytesMax = std::size_t{64} << 10;

enum FluidField {
  kVarname = 1,
  kType = 2,
  kDataType = 3,
  kDims = 4,
  kLodLevel = 5,
  kLod = 6,
  kHeight = 7,
  kValues = 8,
  kRows = 9,
  kOutVarname = 10,
  kProfile = 11,
  kTrainerId = 12,
  kTableName = 13,
};
constexpr int kLodData = 1;  // the field inside kLod

// The value of kType for selected rows. A third value, an NCCL id, is only used between trainers.
constexpr std::uint64_t kSelectedRows = 1;

constexpr std::uint32_t VarintTag(int field) { return static_cast<std::uint32_t>(field) << 3; }
constexpr std::uint32_t BytesTag(int field) { return VarintTag(field) | 2; }

// --- Writing.

void WriteVarint(int field, std::int64_t value, CodedOutputStream& out) {
  if (value == 0) return;  // as in proto3
  out.WriteVarint32(VarintTag(field));
  out.WriteVarint64(static_cast<std::uint64_t>(value));
}

void WriteText(int field, const std::string& text, CodedOutputStream& out) {
  if (text.empty()) return;
  out.WriteVarint32(BytesTag(field));
  out.WriteVarint32(static_cast<std::uint32_t>(text.size()));
  out.WriteString(text);
}

template <typename Numbers>
std::size_t PackedBytes(const Numbers& numbers) {
  std::size_t bytes = 0;
  for (const auto number : numbers)
    bytes += CodedOutputStream::VarintSize64(static_cast<std::uint64_t>(number));
  return bytes;
}

template <typename Numbers>
void WritePacked(int field, const Numbers& numbers, CodedOutputStream& out) {
  if (numbers.empty()) return;
  out.WriteVarint32(BytesTag(field));
  out.WriteVarint32(static_cast<std::uint32_t>(PackedBytes(numbers)));
  for (const auto number : numbers) out.WriteVarint64(static_cast<std::uint64_t>(number));
}

void WriteLod(const LoD& lod, CodedOutputStream& out) {
  WriteVarint(kLodLevel, static_cast<std::int64_t>(lod.size()), out);
  for (const LoDLevel& level : lod) {
    const std::size_t packed = PackedBytes(level);
    const std::size_t head = level.empty() ? 0 : 1 + CodedOutputStream::VarintSize64(packed);
    out.WriteVarint32(BytesTag(kLod));
    out.WriteVarint32(static_cast<std::uint32_t>(head + packed));
    WritePacked(kLodData, level, out);
  }
}

// Writes the tag and length of a field whose bytes follow.
void WriteHead(int field, const Payload& bytes, CodedOutputStream& out) {
  out.WriteVarint32(BytesTag(field));
  out.WriteVarint32(static_cast<std::uint32_t>(bytes.size()));
}

template <typename Write>
Payload WrittenBy(Write write) {
  std::string text;
  {
    google::protobuf::io::StringOutputStream stream(&text);
    CodedOutputStream out(&stream);
    write(out);
  }
  return Payload::Of(std::move(text));
}

// --- Reading.

class FluidReader {
 public:
  explicit FluidReader(const Payload& payload) : payload_(payload), stream_(payload), in_(&stream_) {}

  Result<VariableMessage> Read() {
    while (const std::uint32_t tag = in_.ReadTag()) {
      PENSTOCK_RETURN_IF_ERROR(ReadField(tag));
      PENSTOCK_RETURN_IF_ERROR(BoundDescription(0));
    }
    if (!in_.ConsumedEntireMessage()) return CutOff();
    PENSTOCK_RETURN_IF_ERROR(FinishTensor());
    return std::move(message_);
  }

 private:
  Status ReadField(std::uint32_t tag) {
    const auto field = static_cast<int>(tag >> 3);
    const bool describes = field >= kVarname && field <= kHeight;
    if (describes && values_) {
      return DataLoss("E-wire-order", "field ", field, " comes after the values that it describes");
    }
    tensor_fields_ |= describes && field != kVarname;
    switch (tag) {
      case BytesTag(kVarname):
        return ReadText(message_.varname);
      case VarintTag(kType):
        return ReadNumber(type_);
      case VarintTag(kDataType):
        return ReadNumber(data_type_);
      case VarintTag(kDims):
        return ReadOne(dims_);
      case BytesTag(kDims):
        return ReadPacked(dims_);
      case VarintTag(kLodLevel):
        return ReadNumber(lod_level_);
      case BytesTag(kLod):
        return ReadLod();
      case VarintTag(kHeight):
        return ReadNumber(height_);
      case BytesTag(kValues):
        return ReadBytes(field, values_);
      case BytesTag(kRows):
        if (!values_) return DataLoss("E-wire-order", "the rows' numbers come before the values");
        return ReadBytes(field, rows_);
      case BytesTag(kOutVarname):
        return ReadText(message_.out_varname);
      case VarintTag(kProfile):
        return ReadNumber(message_.profile);
      case VarintTag(kTrainerId):
        return ReadNumber(message_.trainer_id);
      case BytesTag(kTableName):
        return ReadText(message_.table_name);
      default:
        return DataLoss("E-wire-field", "field ", field, " of wire type ", tag & 7,
                        " is none of a VariableMessage");
    }
  }

  // Reads a length; an error if it exceeds the remaining bytes.
  Status ReadLength(int& length) {
    std::uint32_t claimed = 0;
    if (!in_.ReadVarint32(&claimed)) return CutOff();
    const std::size_t left = payload_.size() - static_cast<std::size_t>(in_.CurrentPosition());
    if (claimed > left) {
      return DataLoss("E-wire-message", "a field of ", claimed, " bytes in a message with ", left, " left");
    }
    length = static_cast<int>(claimed);
    return OkStatus();
  }
  // Requires that `more` further bytes of description stay within the limit.
  Status BoundDescription(int more) const {
    const std::size_t bytes = static_cast<std::size_t>(in_.CurrentPosition() + more) -
                              (values_ ? values_->size() : 0) - (rows_ ? rows_->size() : 0);
    if (bytes <= kDescriptionBytesMax) return OkStatus();
    return DataLoss("E-wire-message", "names, shape and lod take over ", kDescriptionBytesMax, " bytes");
  }
  Status ReadDescriptionLength(int& length) {
    PENSTOCK_RETURN_IF_ERROR(ReadLength(length));
    return BoundDescription(length);
  }

  Status ReadText(std::string& text) {
    int length = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadDescriptionLength(length));
    return in_.ReadString(&text, length) ? OkStatus() : CutOff();
  }

  Status ReadBytes(int field, std::optional<Payload>& bytes) {
    if (bytes) return DataLoss("E-wire-order", "field ", field, " is there twice");
    int length = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadLength(length));
    bytes = payload_.Part(static_cast<std::size_t>(in_.CurrentPosition()), static_cast<std::size_t>(length));
    return in_.Skip(length) ? OkStatus() : CutOff();
  }

  template <typename T>
  Status ReadNumber(T& number) {
    std::uint64_t value = 0;
    if (!in_.ReadVarint64(&value)) return CutOff();
    number = static_cast<T>(value);
    return OkStatus();
  }

  template <typename T>
  Status ReadOne(std::vector<T>& numbers) {
    return ReadNumber(numbers.emplace_back());
  }

  template <typename T>
  Status ReadPacked(std::vector<T>& numbers) {
    int length = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadDescriptionLength(length));
    const auto limit = in_.PushLimit(length);
    while (in_.BytesUntilLimit() > 0) PENSTOCK_RETURN_IF_ERROR(ReadOne(numbers));
    in_.PopLimit(limit);
    return OkStatus();
  }

  Status ReadLod() {
    int length = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadDescriptionLength(length));
    const auto limit = in_.PushLimit(length);
    LoDLevel& level = lod_.emplace_back();
    while (in_.BytesUntilLimit() > 0) {
      const std::uint32_t tag = in_.ReadTag();
      if (tag == BytesTag(kLodData)) {
        PENSTOCK_RETURN_IF_ERROR(ReadPacked(level));
      } else if (tag == VarintTag(kLodData)) {
        PENSTOCK_RETURN_IF_ERROR(ReadOne(level));
      } else {
        return DataLoss("E-wire-field", "field ", tag >> 3, " is none of a level of lod");
      }
    }
    in_.PopLimit(limit);
    return OkStatus();
  }

  // Makes the tensor from its fields, if the message has values.
  Status FinishTensor() {
    if (!values_) {
      if (!tensor_fields_) return OkStatus();
      return DataLoss("E-wire-message", "the message describes a tensor and has no values");
    }
    if (data_type_ > std::numeric_limits<std::int32_t>::max() || !IsDType(static_cast<int>(data_type_))) {
      return DataLoss("E-wire-field", "element type ", data_type_, " is none of Fluid's");
    }
    if (type_ > kSelectedRows) {
      return DataLoss("E-wire-field", "a variable of type ", type_, " is neither a tensor nor selected rows");
    }
    if (lod_level_ != lod_.size()) {
      return DataLoss("E-wire-size", "lod has ", lod_.size(), " levels, and the message says ", lod_level_);
    }
    FluidTensor& tensor = message_.tensor.emplace();
    tensor.dtype = static_cast<DType>(data_type_);
    PENSTOCK_RETURN_IF_ERROR(CompareSizes(SizeOf(tensor.dtype)));
    tensor.shape = Shape(std::move(dims_));
    tensor.lod = std::move(lod_);
    tensor.values = *std::move(values_);
    if (type_ == kSelectedRows) tensor.rows = FluidRows{.height = height_, .numbers = *std::move(rows_)};
    return OkStatus();
  }

  Status CompareSizes(std::size_t element_bytes) {
    std::size_t bytes = element_bytes;
    for (const Dim dim : dims_) {
      // With an extent of zero the tensor is empty, however large the others are. Otherwise its bytes are
      // limited by the size of a message.
      if (dim < 0 || static_cast<std::uint64_t>(dim) > kMessageBytesMax) {
        return DataLoss("E-wire-size", "an extent of ", dim, " cannot be");
      }
      bytes = std::min(bytes * static_cast<std::size_t>(dim), kMessageBytesMax + 1);
    }
    if (bytes != values_->size()) {
      return DataLoss("E-wire-size", "a tensor of shape ", Shape(dims_).ToString(), " has ", values_->size(),
                      " bytes of values");
    }
    if ((type_ == kSelectedRows) != rows_.has_value()) {
      return DataLoss("E-wire-size", "numbers of rows belong to selected rows, and to nothing else");
    }
    if (rows_ && (dims_.empty() || rows_->size() % sizeof(std::int64_t) != 0 ||
                  rows_->size() / sizeof(std::int64_t) != static_cast<std::size_t>(dims_[0]))) {
      return DataLoss("E-wire-size", "selected rows of shape ", Shape(dims_).ToString(), " have ",
                      rows_->size(), " bytes of row numbers");
    }
    return OkStatus();
  }

  Status CutOff() const {
    return DataLoss("E-wire-message", "the message of ", payload_.size(), " bytes ends within a field");
  }

  const Payload& payload_;
  PieceStream stream_;
  CodedInputStream in_;
  VariableMessage message_;
  bool tensor_fields_ = false;  // a field that describes a tensor was read
  std::uint64_t type_ = 0, data_type_ = 0, lod_level_ = 0;
  std::int64_t height_ = 0;
  std::vector<Dim> dims_;
  LoD lod_;
  std::optional<Payload> values_, rows_;
};

}  // namespace

FluidTensor FluidTensor::Of(const Tensor& tensor) {
  return {.dtype = tensor.dtype(),
          .shape = tensor.shape(),
          .lod = tensor.lod(),
          .values = Payload::Of(tensor, 0, tensor.bytes())};
}

Result<Payload> WriteVariableMessage(const VariableMessage& message) {
  const FluidTensor* const tensor = message.tensor ? &*message.tensor : nullptr;
  const std::size_t body =
      tensor == nullptr ? 0 : tensor->values.size() + (tensor->rows ? tensor->rows->numbers.size() : 0);
  const auto too_large = [&](std::size_t bytes) {
    return InvalidArgument("E-wire-large", message.varname, " is a message of ", bytes,
                           " bytes; Fluid's wire carries less than 2 GiB");
  };
  if (body > kMessageBytesMax) return too_large(body);
  Payload payload = WrittenBy([&](CodedOutputStream& out) {
    WriteText(kVarname, message.varname, out);
    if (tensor != nullptr) {
      if (tensor->rows) WriteVarint(kType, kSelectedRows, out);
      WriteVarint(kDataType, static_cast<int>(tensor->dtype), out);
      WritePacked(kDims, tensor->shape.dims(), out);
      WriteLod(tensor->lod, out);
      if (tensor->rows) WriteVarint(kHeight, tensor->rows->height, out);
    }
    WriteText(kOutVarname, message.out_varname, out);
    WriteVarint(kProfile, message.profile, out);
    WriteVarint(kTrainerId, message.trainer_id, out);
    WriteText(kTableName, message.table_name, out);
    if (tensor != nullptr) WriteHead(kValues, tensor->values, out);
  });
  if (tensor != nullptr) payload.Append(tensor->values);
  if (tensor != nullptr && tensor->rows) {
    const Payload& numbers = tensor->rows->numbers;
    payload.Append(WrittenBy([&](CodedOutputStream& out) { WriteHead(kRows, numbers, out); }));
    payload.Append(numbers);
  }
  if (payload.size() > kMessageBytesMax) return too_large(payload.size());
  return payload;
}

Result<VariableMessage> ReadVariableMessage(const Payload& message) {
  if (message.size() > kMessageBytesMax) {
    return DataLoss("E-wire-message", "a message of ", message.size(), " bytes, where 2 GiB is the limit");
  }
  return FluidReader(message).Read();
}

}  // namespace penstock::protocol
