#include "tests/support/npz.h"

#include <zlib.h>

#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

template <typename T>
T Little(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Result<std::string> Inflate(std::string_view packed, std::size_t size) {
  std::string out(size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return InternalError("E-npz", "zlib cannot start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&stream, Z_FINISH);
  const std::size_t got = stream.total_out;
  inflateEnd(&stream);
  if (code != Z_STREAM_END || got != size) return DataLoss("E-npz", "a deflated member is damaged");
  return out;
}

// The text after `'key':` of the header's dictionary, up to the next top-level comma.
std::string_view HeaderValue(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(StrCat("'", key, "':"));
  if (at == std::string_view::npos) return {};
  std::string_view value = StripSpace(header.substr(at + key.size() + 3));
  const bool tuple = !value.empty() && value[0] == '(';
  return value.substr(0, tuple ? value.find(')') : value.find(','));
}

std::optional<DType> TypeOfDescr(std::string_view descr) {
  static const std::pair<std::string_view, DType> kTypes[] = {
      {"'<f4'", DType::kFp32},  {"'<f8'", DType::kFp64},  {"'<f2'", DType::kFp16},
      {"'<i8'", DType::kInt64}, {"'<i4'", DType::kInt32}, {"'<i2'", DType::kInt16},
      {"'|i1'", DType::kInt8},  {"'|u1'", DType::kUInt8}, {"'|b1'", DType::kBool}};
  for (const auto& [text, type] : kTypes) {
    if (text == descr) return type;
  }
  return std::nullopt;
}

}  // namespace

Result<Tensor> ReadNpy(std::string_view bytes) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") return DataLoss("E-npy", "not an .npy array");
  const bool wide = bytes[6] >= 2;
  const std::size_t begin = wide ? 12 : 10;
  const std::size_t length = wide ? Little<std::uint32_t>(bytes, 8) : Little<std::uint16_t>(bytes, 8);
  if (bytes.size() < begin + length) return DataLoss("E-npy", "the header is cut off");
  const std::string_view header = bytes.substr(begin, length);
  const std::optional<DType> type = TypeOfDescr(HeaderValue(header, "descr"));
  if (!type) return DataLoss("E-npy", "element type ", HeaderValue(header, "descr"), " is not read here");
  std::vector<Dim> dims;
  for (const std::string& part : Split(HeaderValue(header, "shape").substr(1), ',')) {
    const std::string_view digits = StripSpace(part);
    if (!digits.empty()) dims.push_back(std::stoll(std::string(digits)));
  }
  if (dims.size() > 1 && HeaderValue(header, "fortran_order") == "True") {
    return DataLoss("E-npy", "column-major arrays are not read here");
  }
  Tensor tensor(*type, Shape(dims));
  const std::string_view data = bytes.substr(begin + length);
  if (data.size() != tensor.bytes()) return DataLoss("E-npy", "elements missing or too many");
  if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  return tensor;
}

Result<Arrays> ReadNpz(std::string_view bytes) {
  // The end record is the last thing in the file; archives of ours carry no comment.
  constexpr std::size_t kEndSize = 22;
  if (bytes.size() < kEndSize || Little<std::uint32_t>(bytes, bytes.size() - kEndSize) != 0x06054b50u) {
    return DataLoss("E-npz", "no end of central directory");
  }
  const std::size_t end = bytes.size() - kEndSize;
  const int count = Little<std::uint16_t>(bytes, end + 10);
  std::size_t at = Little<std::uint32_t>(bytes, end + 16);
  Arrays arrays;
  for (int i = 0; i < count; ++i) {
    if (at + 46 > bytes.size()) return DataLoss("E-npz", "the central directory is cut off");
    const int method = Little<std::uint16_t>(bytes, at + 10);
    const std::size_t packed_size = Little<std::uint32_t>(bytes, at + 20);
    const std::size_t size = Little<std::uint32_t>(bytes, at + 24);
    const std::size_t name_size = Little<std::uint16_t>(bytes, at + 28);
    const std::size_t local = Little<std::uint32_t>(bytes, at + 42);
    std::string name(bytes.substr(at + 46, name_size));
    at += 46 + name_size + Little<std::uint16_t>(bytes, at + 30) + Little<std::uint16_t>(bytes, at + 32);
    if (local + 30 > bytes.size()) return DataLoss("E-npz", "member ", name, " is cut off");
    const std::size_t data =
        local + 30 + Little<std::uint16_t>(bytes, local + 26) + Little<std::uint16_t>(bytes, local + 28);
    if (data + packed_size > bytes.size()) return DataLoss("E-npz", "member ", name, " is cut off");
    std::string content(bytes.substr(data, packed_size));
    if (method == 8) {
      PENSTOCK_ASSIGN_OR_RETURN(content, Inflate(content, size));
    } else if (method != 0) {
      return DataLoss("E-npz", "member ", name, " is packed by method ", method);
    }
    if (EndsWith(name, ".npy")) name.resize(name.size() - 4);
    Result<Tensor> array = ReadNpy(content);
    if (!array.ok()) return std::move(array).status().In(name);
    arrays[name] = *std::move(array);
  }
  return arrays;
}

}  // namespace penstock::test
