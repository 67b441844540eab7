#include "framework/text/json_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "extra.pb.h"
#include "framework/text/lexer.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kHexKey[] = "hex";
constexpr char kUnknownKey[] = "unknown_fields";

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 0;
    const auto read = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (read.ec != std::errc() || read.ptr != hex.data() + i + 2) return std::nullopt;
    out += static_cast<char>(value);
  }
  return out;
}

Json StringToJson(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(std::string_view(text).substr(i));
    if (length == 0) return Json{{kHexKey, ToHex(text)}};
    i += length;
  }
  return text;
}

Json FloatToJson(float value) {
  const std::string shortest = StrCat(value);
  if (!std::isfinite(value)) return shortest;
  double number = 0;
  std::from_chars(shortest.data(), shortest.data() + shortest.size(), number);
  // A reader rounds twice, text to double and double to float. The result must be the same float.
  return static_cast<float>(number) == value ? number : static_cast<double>(value);
}

// One value: of a single field, or element `i` of a repeated field.
Json ValueToJson(const Message& message, const FieldDescriptor* field, int i) {
  const Reflection* r = message.GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? r->GetRepeatedInt32(message, field, i) : r->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? r->GetRepeatedInt64(message, field, i) : r->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return FloatToJson(repeated ? r->GetRepeatedFloat(message, field, i) : r->GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? r->GetRepeatedBool(message, field, i) : r->GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (repeated ? r->GetRepeatedEnum(message, field, i) : r->GetEnum(message, field))->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return StringToJson(repeated ? r->GetRepeatedString(message, field, i) : r->GetString(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(repeated ? r->GetRepeatedMessage(message, field, i)
                                    : r->GetMessage(message, field));
    default:
      PENSTOCK_CHECK(false, StrCat(field->full_name(), " has a type that the wire form does not use"));
  }
}

// A map as an array of its entries, sorted by key. A JSON object would not do: its keys must be UTF-8.
Json MapToJson(const Message& message, const FieldDescriptor* field) {
  std::map<std::string, Json> sorted;
  const Reflection* r = message.GetReflection();
  for (int i = 0; i < r->FieldSize(message, field); ++i) {
    const Message& entry = r->GetRepeatedMessage(message, field, i);
    const FieldDescriptor* key = entry.GetDescriptor()->FindFieldByNumber(1);
    sorted.emplace(entry.GetReflection()->GetString(entry, key), MessageToJson(entry));
  }
  Json out = Json::array();
  for (auto& [key, entry] : sorted) out.push_back(std::move(entry));
  return out;
}

Status Wrong(const std::string& path, const auto&... parts) {
  return InvalidArgument("E-json", path.empty() ? "the document" : path, ": ", parts...);
}

// Reads values of one field into a message; `add` appends to a repeated field.
class FieldReader {
 public:
  FieldReader(Message& message, const FieldDescriptor* field, bool add)
      : message_(message), r_(message.GetReflection()), field_(field), add_(add) {}

  Status Read(const Json& json, const std::string& path) {
    switch (field_->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64:
        return ReadInteger(json, path);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return ReadFloat(json, path);
      case FieldDescriptor::CPPTYPE_BOOL:
        if (!json.is_boolean()) return Wrong(path, "expected true or false");
        add_ ? r_->AddBool(&message_, field_, json.get<bool>())
             : r_->SetBool(&message_, field_, json.get<bool>());
        return OkStatus();
      case FieldDescriptor::CPPTYPE_ENUM:
        return ReadEnum(json, path);
      case FieldDescriptor::CPPTYPE_STRING:
        return ReadString(json, path);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return MessageFromJson(
            json, path, add_ ? *r_->AddMessage(&message_, field_) : *r_->MutableMessage(&message_, field_));
      default:
        PENSTOCK_CHECK(false, StrCat(field_->full_name(), " has a type that the wire form does not use"));
    }
  }

 private:
  Status ReadInteger(const Json& json, const std::string& path) {
    if (!json.is_number_integer()) return Wrong(path, "expected an integer");
    const bool narrow = field_->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
    const bool beyond =
        json.is_number_unsigned() &&
        json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t value = beyond ? 0 : json.get<std::int64_t>();
    if (beyond || (narrow && value != static_cast<std::int32_t>(value))) {
      return Wrong(path, json.dump(), " does not fit in ", narrow ? 32 : 64, " bits");
    }
    if (narrow) {
      const auto number = static_cast<std::int32_t>(value);
      add_ ? r_->AddInt32(&message_, field_, number) : r_->SetInt32(&message_, field_, number);
    } else {
      add_ ? r_->AddInt64(&message_, field_, value) : r_->SetInt64(&message_, field_, value);
    }
    return OkStatus();
  }

  Status ReadFloat(const Json& json, const std::string& path) {
    float value = 0;
    if (json.is_number()) {
      value = static_cast<float>(json.get<double>());
    } else {
      const std::string text = json.is_string() ? json.get<std::string>() : "";
      if (text != "inf" && text != "-inf" && text != "nan" && text != "-nan")
        return Wrong(path, "expected a number");
      std::from_chars(text.data(), text.data() + text.size(), value);
    }
    add_ ? r_->AddFloat(&message_, field_, value) : r_->SetFloat(&message_, field_, value);
    return OkStatus();
  }

  Status ReadEnum(const Json& json, const std::string& path) {
    const auto* value =
        json.is_string() ? field_->enum_type()->FindValueByName(json.get<std::string>()) : nullptr;
    if (value == nullptr) return Wrong(path, "expected one of the names of ", field_->enum_type()->name());
    add_ ? r_->AddEnum(&message_, field_, value) : r_->SetEnum(&message_, field_, value);
    return OkStatus();
  }

  Status ReadString(const Json& json, const std::string& path) {
    std::optional<std::string> text;
    if (json.is_string()) text = json.get<std::string>();
    if (json.is_object() && json.size() == 1 && json.contains(kHexKey) && json[kHexKey].is_string()) {
      text = FromHex(json[kHexKey].get<std::string>());
    }
    if (!text) return Wrong(path, "expected a string, or {\"hex\": ...}");
    add_ ? r_->AddString(&message_, field_, *std::move(text))
         : r_->SetString(&message_, field_, *std::move(text));
    return OkStatus();
  }

  Message& message_;
  const Reflection* r_;
  const FieldDescriptor* field_;
  bool add_;
};

const FieldDescriptor* FindField(const Message& message, const std::string& name) {
  if (const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name)) return field;
  const FieldDescriptor* extra = message.GetReflection()->FindKnownExtensionByNumber(proto::extra.number());
  return extra != nullptr && extra->name() == name ? extra : nullptr;
}

Status FieldFromJson(const Json& json, const std::string& path, const FieldDescriptor* field,
                     Message& message) {
  if (!field->is_repeated()) return FieldReader(message, field, false).Read(json, path);
  if (!json.is_array()) return Wrong(path, "expected an array");
  for (std::size_t i = 0; i < json.size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(FieldReader(message, field, true).Read(json[i], StrCat(path, "[", i, "]")));
  }
  return OkStatus();
}

}  // namespace

Json MessageToJson(const Message& message) {
  Json out = Json::object();
  std::vector<const FieldDescriptor*> fields;
  const Reflection* reflection = message.GetReflection();
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    Json& value = out[field->name()];
    if (field->is_map()) {
      value = MapToJson(message, field);
    } else if (field->is_repeated()) {
      value = Json::array();
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        value.push_back(ValueToJson(message, field, i));
    } else {
      value = ValueToJson(message, field, 0);
    }
  }
  if (const auto& unknown = reflection->GetUnknownFields(message); !unknown.empty()) {
    std::string bytes;
    unknown.SerializeToString(&bytes);
    out[kUnknownKey] = ToHex(bytes);
  }
  return out;
}

Status MessageFromJson(const Json& json, const std::string& path, Message& message) {
  if (!json.is_object()) return Wrong(path, "expected an object");
  for (const auto& [key, value] : json.items()) {
    const std::string name = SpellName(key);
    const std::string here = path.empty() ? name : StrCat(path, ".", name);
    if (key == kUnknownKey) {
      const std::optional<std::string> bytes =
          value.is_string() ? FromHex(value.get<std::string>()) : std::nullopt;
      if (!bytes || !message.GetReflection()->MutableUnknownFields(&message)->ParseFromString(*bytes)) {
        return Wrong(here, "expected the hex digits of fields");
      }
      continue;
    }
    const FieldDescriptor* field = FindField(message, key);
    if (field == nullptr) return Wrong(here, "a ", message.GetDescriptor()->name(), " has no such field");
    PENSTOCK_RETURN_IF_ERROR(FieldFromJson(value, here, field, message));
  }
  return OkStatus();
}

}  // namespace penstock
