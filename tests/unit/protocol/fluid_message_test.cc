#include "executor/protocol/fluid_message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/corpus.h"

namespace penstock::protocol {
namespace {

using test::BytesOf;

std::string Folder() { return test::CorpusOrSelection() + "/wire/"; }

// The names of the corpus's (or the selection's) messages, without replies that have no message or no field.
std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const std::string& name : test::FilesEndingIn(Folder(), ".bin")) {
    if (name != "send_reply" && name != "fetch_barrier_reply") names.push_back(name);
  }
  return names;
}

std::string Bin(const std::string& name) { return BytesOf(Folder() + name + ".bin"); }

template <typename T>
std::vector<T> NumbersOf(const Payload& payload) {
  std::vector<T> numbers(payload.size() / sizeof(T));
  payload.CopyTo(reinterpret_cast<std::byte*>(numbers.data()));
  return numbers;
}

template <typename T>
void ExpectValues(const nlohmann::json& values, const Payload& payload) {
  const std::vector<T> numbers = NumbersOf<T>(payload);
  ASSERT_EQ(values.size(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(values[i].get<T>(), numbers[i]) << i;
}

void ExpectValues(const nlohmann::json& values, const FluidTensor& tensor) {
  switch (tensor.dtype) {
    case DType::kFp32:
      return ExpectValues<float>(values, tensor.values);
    case DType::kFp64:
      return ExpectValues<double>(values, tensor.values);
    case DType::kInt64:
      return ExpectValues<std::int64_t>(values, tensor.values);
    case DType::kInt32:
      return ExpectValues<std::int32_t>(values, tensor.values);
    case DType::kInt16:
      return ExpectValues<std::int16_t>(values, tensor.values);
    case DType::kBool:
      return ExpectValues<std::uint8_t>(
          nlohmann::json(std::vector<std::uint8_t>(values.begin(), values.end())), tensor.values);
    default:
      EXPECT_EQ(tensor.dtype, DType::kFp16) << "no message of the corpus has that type";
  }
}

void ExpectTensor(const nlohmann::json& fields, const FluidTensor& tensor) {
  EXPECT_EQ(static_cast<int>(tensor.dtype), fields.value("data_type", 0));
  EXPECT_EQ(tensor.shape.dims(), fields.at("dims").get<std::vector<Dim>>());
  EXPECT_EQ(tensor.lod, fields.value("lod", LoD()));
  EXPECT_EQ(tensor.lod.size(), fields.value("lod_level", std::size_t{0}));
  EXPECT_EQ(tensor.values.size(), fields.at("serialized_bytes").get<std::size_t>());
  ExpectValues(fields.at("values"), tensor);
  ASSERT_EQ(tensor.rows.has_value(), fields.value("type", 0) == 1);
  if (!tensor.rows) return;
  EXPECT_EQ(tensor.rows->height, fields.at("slr_height").get<std::int64_t>());
  EXPECT_EQ(NumbersOf<std::int64_t>(tensor.rows->numbers),
            fields.at("rows").get<std::vector<std::int64_t>>());
}

TEST(FluidMessageTest, FluidsMessagesRoundTripByteForByte) {
  const std::vector<std::string> names = Names();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::string bytes = Bin(name);
    const Result<VariableMessage> message = ReadVariableMessage(Payload::Of(bytes));
    ASSERT_TRUE(message.ok()) << message.status().ToString();
    const auto json = nlohmann::json::parse(BytesOf(Folder() + name + ".json"));
    const nlohmann::json& fields = json.at("fields");
    EXPECT_EQ(message->varname, fields.value("varname", ""));
    EXPECT_EQ(message->out_varname, fields.value("out_varname", ""));
    EXPECT_EQ(message->table_name, fields.value("table_name", ""));
    EXPECT_EQ(message->profile, fields.value("profile", 0));
    EXPECT_EQ(message->trainer_id, fields.value("trainer_id", 0));
    ASSERT_EQ(message->tensor.has_value(), fields.contains("serialized_bytes"));
    if (message->tensor) ExpectTensor(fields, *message->tensor);

    const Result<Payload> written = WriteVariableMessage(*message);
    ASSERT_TRUE(written.ok()) << written.status().ToString();
    EXPECT_EQ(written->ToText(), bytes);
  }
  EXPECT_GE(names.size(), test::CorpusFolder().empty() ? 5u : 39u);
}

// The payload in pieces of `size` bytes, as a network may deliver it.
Payload InPieces(const std::string& bytes, std::size_t size) {
  const auto owner = std::make_shared<const std::string>(bytes);
  Payload payload;
  for (std::size_t begin = 0; begin < bytes.size(); begin += size) {
    payload.Append({owner, reinterpret_cast<const std::byte*>(owner->data()) + begin,
                    std::min(size, bytes.size() - begin)});
  }
  return payload;
}

TEST(FluidMessageTest, AFragmentedMessageReadsTheSame) {
  for (const std::string& name : Names()) {
    const std::string bytes = Bin(name);
    for (const std::size_t size : {1, 2, 3, 7, 64}) {
      const Result<VariableMessage> message = ReadVariableMessage(InPieces(bytes, size));
      ASSERT_TRUE(message.ok()) << name << ": " << message.status().ToString();
      EXPECT_EQ(WriteVariableMessage(*message)->ToText(), bytes) << name << " in pieces of " << size;
    }
  }
}

TEST(FluidMessageTest, ValuesAreNotCopied) {
  Tensor gradient(DType::kFp32, {64, 4});
  std::memset(gradient.raw(), 1, gradient.bytes());
  VariableMessage message{.varname = "w@GRAD"};
  message.tensor = FluidTensor::Of(gradient);
  const Payload written = *WriteVariableMessage(message);
  ASSERT_EQ(written.pieces().size(), 2u);
  EXPECT_EQ(written.pieces()[1].data, gradient.raw());

  const Result<VariableMessage> read = ReadVariableMessage(written);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->tensor->values.pieces().size(), 1u);
  EXPECT_EQ(read->tensor->values.pieces()[0].data, gradient.raw());
}

// Every truncation and flipped bit gives an error or another message, never a crash (the sanitizers watch).
TEST(FluidMessageTest, DamagedMessagesAreAnErrorOrAnotherMessage) {
  int refused = 0, read = 0;
  const auto meet = [&](const std::string& bytes) {
    const Result<VariableMessage> message = ReadVariableMessage(Payload::Of(bytes));
    if (message.ok()) {
      ++read;
      EXPECT_TRUE(WriteVariableMessage(*message).ok());
    } else {
      ++refused;
      EXPECT_EQ(message.status().code(), StatusCode::kDataLoss);
    }
  };
  for (const std::string& name : Names()) {
    const std::string bytes = Bin(name);
    for (std::size_t size = 0; size < bytes.size(); ++size) meet(bytes.substr(0, size));
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      meet(flipped);
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(read, 500);
}

std::string IdOf(std::string_view bytes) {
  const Result<VariableMessage> message = ReadVariableMessage(Payload::Of(std::string(bytes)));
  return message.ok() ? "" : message.status().id();
}

constexpr std::string_view kName = "\x0a\x01w";  // varname w
std::string Join(std::initializer_list<std::string_view> fields) {
  std::string bytes;
  for (const std::string_view field : fields) bytes += field;
  return bytes;
}
std::string_view Raw(const char* bytes, std::size_t size) { return {bytes, size}; }
const std::string_view kValues = Raw("\x42\x08\0\0\x80\x3f\0\0\0\x40", 10);
const std::string_view kFloats = "\x18\x05";       // data_type
const std::string_view kTwo = "\x22\x01\x02";      // dims [2], packed
const std::string_view kTwoUnpacked = "\x20\x02";  // the same, not packed

TEST(FluidMessageTest, MessagesThatFluidAcceptsAreAccepted) {
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo, kValues})), "");
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwoUnpacked, kValues})), "");
  EXPECT_EQ(IdOf(Join({kFloats, kTwo, kName, kValues})), "");
  EXPECT_EQ(IdOf(""), "");
  const std::string late = Join({kName, kFloats, kTwo, kValues, "\x52\x01o", "\x60\x03", "\x6a\x01t"});
  const Result<VariableMessage> message = ReadVariableMessage(Payload::Of(late));
  ASSERT_TRUE(message.ok()) << message.status().ToString();
  EXPECT_EQ(message->out_varname, "o");
  EXPECT_EQ(message->trainer_id, 3);
  EXPECT_EQ(message->table_name, "t");
}

TEST(FluidMessageTest, MessagesThatAbortFluidAreRefused) {
  EXPECT_EQ(IdOf(Join({kName, Raw("\x70\x01", 2)})), "E-wire-field");      // field 14
  EXPECT_EQ(IdOf(Join({kName, "\x65\x01\x01\x01\x01"})), "E-wire-field");  // trainer_id as 32 bits
  EXPECT_EQ(IdOf(Join({kName, kValues, kFloats, kTwo})), "E-wire-order");
  EXPECT_EQ(IdOf(Join({kFloats, kTwo, kValues, kName})), "E-wire-order");
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo, Raw("\x4a\0", 2), kValues})), "E-wire-order");
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo, kValues, kValues})), "E-wire-order");
  EXPECT_EQ(IdOf(Join({kName, kFloats, "\x22\x01\x03", kValues})), "E-wire-size");
  EXPECT_EQ(IdOf(Join({kName, kFloats, "\x22\x01\x01", kValues})), "E-wire-size");
  EXPECT_EQ(IdOf(Join({kName, "\x18\x07", kTwo, kValues})), "E-wire-field");  // an unknown element type
  EXPECT_EQ(IdOf(Join({kName, "\x10\x02", kFloats, kTwo, kValues})), "E-wire-field");
  EXPECT_EQ(IdOf(Join({kName, "\x10\x01", kFloats, kTwo, kValues})), "E-wire-size");  // rows without numbers
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo, "\x28\x01", kValues})),
            "E-wire-size");  // a missing level
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo})), "E-wire-message");
  EXPECT_EQ(IdOf(Join({kName, kFloats, kTwo, Raw("\x42\xff\xff\xff\x7f\0\0", 7)})), "E-wire-message");
  EXPECT_EQ(IdOf(Raw("\x0a\xff\xff\xff\x0fw", 6)), "E-wire-message");
  // 2^63 elements: their size in bytes overflows.
  EXPECT_EQ(IdOf(Join({kName, kFloats, "\x22\x09\x80\x80\x80\x80\x80\x80\x80\x80\x40", kValues})),
            "E-wire-size");
  EXPECT_EQ(IdOf(std::string("\x0a\x90\x4e", 3) + std::string(10000, 'n')), "");
  EXPECT_EQ(IdOf(std::string("\x0a\xa0\x8d\x06", 4) + std::string(100000, 'n')), "E-wire-message");
}

TEST(FluidMessageTest, OversizedMessagesAreNotWritten) {
  VariableMessage message{.varname = "w"};
  message.tensor = FluidTensor{.shape = Shape{Dim{1} << 29}};
  message.tensor->values.Append({nullptr, nullptr, std::size_t{1} << 31});  // they are never read
  const Result<Payload> written = WriteVariableMessage(message);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.status().id(), "E-wire-large");
}

}  // namespace
}  // namespace penstock::protocol
