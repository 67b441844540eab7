#include "framework/tensor/serialize.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "framework.pb.h"
#include "framework/base/check.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is written as it lies in memory");

constexpr std::uint32_t kVersion = 0;

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Reads from the front and keeps its position for messages.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes), whole_(bytes.size()) {}

  std::string_view rest() const { return rest_; }
  std::size_t at() const { return whole_ - rest_.size(); }

  template <typename T>
  Status Read(T& value, std::string_view what) {
    PENSTOCK_RETURN_IF_ERROR(Require(sizeof(T), what));
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return OkStatus();
  }
  Status Take(std::uint64_t bytes, std::string_view what, std::string_view& taken) {
    PENSTOCK_RETURN_IF_ERROR(Require(bytes, what));
    taken = rest_.substr(0, static_cast<std::size_t>(bytes));
    rest_.remove_prefix(taken.size());
    return OkStatus();
  }
  // Reads `count` numbers of 8 bytes. Compares sizes before it allocates.
  template <typename T>
  Status ReadNumbers(std::uint64_t count, std::string_view what, std::vector<T>& numbers) {
    static_assert(sizeof(T) == 8);
    if (count > rest_.size() / 8) return Short(what, StrCat(count, " numbers of 8 bytes"));
    numbers.resize(static_cast<std::size_t>(count));
    if (count == 0) return OkStatus();
    std::memcpy(numbers.data(), rest_.data(), numbers.size() * 8);
    rest_.remove_prefix(numbers.size() * 8);
    return OkStatus();
  }
  Status ReadVersion(std::string_view what) {
    std::uint32_t version = 0;
    const std::size_t begin = at();
    PENSTOCK_RETURN_IF_ERROR(Read(version, what));
    if (version == kVersion) return OkStatus();
    return DataLoss("E-tensor-version", what, " is ", version, " at byte ", begin, ", only 0 is known");
  }

 private:
  Status Require(std::uint64_t bytes, std::string_view what) const {
    return bytes <= rest_.size() ? OkStatus() : Short(what, StrCat(bytes, " bytes"));
  }
  Status Short(std::string_view what, const std::string& needed) const {
    return DataLoss("E-tensor-truncated", what, " needs ", needed, " at byte ", at(), ", but ", rest_.size(),
                    " bytes are left");
  }

  std::string_view rest_;
  std::size_t whole_;
};

// What precedes the elements.
void AppendDenseHead(std::string& out, const Tensor& tensor) {
  PENSTOCK_CHECK(tensor.initialized(), "a tensor without a buffer cannot be saved");
  proto::VarType::TensorDesc desc;
  desc.set_data_type(static_cast<proto::VarType::Type>(tensor.dtype()));
  for (const Dim extent : tensor.shape().dims()) desc.add_dims(extent);
  const std::string desc_bytes = desc.SerializeAsString();
  Append(out, kVersion);
  Append(out, static_cast<std::int32_t>(desc_bytes.size()));
  out += desc_bytes;
}

std::string_view ElementsOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()};
}

// Computes the size of the elements in bytes; fails if no memory could hold them.
Status SizeInBytes(const proto::VarType::TensorDesc& desc, std::size_t at, std::uint64_t& bytes) {
  std::int64_t product = static_cast<std::int64_t>(SizeOf(static_cast<DType>(desc.data_type())));
  bool empty = false;
  for (const std::int64_t extent : desc.dims()) {
    if (extent < 0) return DataLoss("E-tensor-extent", "extent ", extent, " at byte ", at, " is negative");
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      return DataLoss("E-tensor-extent", "the extents at byte ", at, " overflow 64 bits");
    }
  }
  bytes = empty ? 0 : static_cast<std::uint64_t>(product);
  return OkStatus();
}

Result<Tensor> ReadDense(Reader& in) {
  PENSTOCK_RETURN_IF_ERROR(in.ReadVersion("the tensor version"));
  std::int32_t desc_size = 0;
  PENSTOCK_RETURN_IF_ERROR(in.Read(desc_size, "the size of the tensor description"));
  const std::size_t desc_at = in.at();
  if (desc_size < 0) {
    return DataLoss("E-tensor-desc", "the size of the tensor description at byte ", desc_at - 4, " is ",
                    desc_size);
  }
  std::string_view desc_bytes;
  PENSTOCK_RETURN_IF_ERROR(
      in.Take(static_cast<std::uint64_t>(desc_size), "the tensor description", desc_bytes));
  proto::VarType::TensorDesc desc;
  if (!desc.ParsePartialFromArray(desc_bytes.data(), static_cast<int>(desc_bytes.size())) ||
      !desc.IsInitialized()) {
    return DataLoss("E-tensor-desc", "the tensor description at byte ", desc_at, " cannot be read");
  }
  if (!IsDType(desc.data_type())) {
    return DataLoss("E-tensor-desc", "element type ", static_cast<int>(desc.data_type()), " at byte ",
                    desc_at, " does not exist");
  }
  std::uint64_t bytes = 0;
  PENSTOCK_RETURN_IF_ERROR(SizeInBytes(desc, desc_at, bytes));
  std::string_view elements;
  PENSTOCK_RETURN_IF_ERROR(in.Take(bytes, "the tensor's elements", elements));
  Tensor tensor(static_cast<DType>(desc.data_type()),
                Shape(std::vector<Dim>(desc.dims().begin(), desc.dims().end())));
  if (!elements.empty()) std::memcpy(tensor.raw(), elements.data(), elements.size());
  return tensor;
}

Result<LoD> ReadLoD(Reader& in) {
  PENSTOCK_RETURN_IF_ERROR(in.ReadVersion("the LoD version"));
  std::uint64_t levels = 0;
  PENSTOCK_RETURN_IF_ERROR(in.Read(levels, "the number of LoD levels"));
  if (levels > in.rest().size() / 8) {  // each level stores at least its size
    return DataLoss("E-tensor-truncated", levels, " LoD levels do not fit in the ", in.rest().size(),
                    " bytes left at byte ", in.at());
  }
  LoD lod(static_cast<std::size_t>(levels));
  for (LoDLevel& level : lod) {
    std::uint64_t bytes = 0;
    PENSTOCK_RETURN_IF_ERROR(in.Read(bytes, "the size of an LoD level"));
    if (bytes % 8 != 0) {
      return DataLoss("E-tensor-lod", "an LoD level of ", bytes, " bytes before byte ", in.at(),
                      " is not a whole number of offsets");
    }
    PENSTOCK_RETURN_IF_ERROR(in.ReadNumbers(bytes / 8, "an LoD level", level));
  }
  return lod;
}

}  // namespace

std::vector<std::string_view> PiecesOf(const Tensor& tensor, std::string& heads) {
  Append(heads, kVersion);
  Append(heads, static_cast<std::uint64_t>(tensor.lod().size()));
  for (const LoDLevel& level : tensor.lod()) {
    Append(heads, static_cast<std::uint64_t>(level.size() * sizeof(level[0])));
    for (const std::uint64_t offset : level) Append(heads, offset);
  }
  AppendDenseHead(heads, tensor);
  return {heads, ElementsOf(tensor)};
}

std::vector<std::string_view> PiecesOf(const SelectedRows& rows, std::string& heads) {
  Append(heads, kVersion);
  Append(heads, static_cast<std::uint64_t>(rows.rows.size()));
  const std::size_t before_ids = heads.size();
  Append(heads, rows.height);
  AppendDenseHead(heads, rows.value);
  const std::string_view text = heads;
  return {text.substr(0, before_ids),
          {reinterpret_cast<const char*>(rows.rows.data()), rows.rows.size() * sizeof(std::int64_t)},
          text.substr(before_ids),
          ElementsOf(rows.value)};
}

void AppendTensor(std::string& out, const Tensor& tensor) {
  std::string heads;
  for (const std::string_view piece : PiecesOf(tensor, heads)) out += piece;
}

void AppendSelectedRows(std::string& out, const SelectedRows& rows) {
  std::string heads;
  for (const std::string_view piece : PiecesOf(rows, heads)) out += piece;
}

Result<Tensor> ReadTensor(std::string_view& bytes) {
  Reader in(bytes);
  PENSTOCK_ASSIGN_OR_RETURN(LoD lod, ReadLoD(in));
  PENSTOCK_ASSIGN_OR_RETURN(Tensor tensor, ReadDense(in));
  tensor.set_lod(std::move(lod));
  bytes = in.rest();
  return tensor;
}

Result<SelectedRows> ReadSelectedRows(std::string_view& bytes) {
  Reader in(bytes);
  SelectedRows out;
  PENSTOCK_RETURN_IF_ERROR(in.ReadVersion("the version of the rows"));
  std::uint64_t count = 0;
  PENSTOCK_RETURN_IF_ERROR(in.Read(count, "the number of rows"));
  PENSTOCK_RETURN_IF_ERROR(in.ReadNumbers(count, "the row ids", out.rows));
  PENSTOCK_RETURN_IF_ERROR(in.Read(out.height, "the height"));
  PENSTOCK_ASSIGN_OR_RETURN(out.value, ReadDense(in));
  const Shape& shape = out.value.shape();
  if (shape.rank() == 0 || shape[0] != static_cast<Dim>(count)) {
    return DataLoss("E-tensor-rows", count, " row ids, but the value is ", shape);
  }
  bytes = in.rest();
  return out;
}

}  // namespace penstock
