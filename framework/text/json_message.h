// Converts any message of the binary form to and from JSON, by reflection.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

#include "framework/base/status.h"

namespace penstock {

using Json = nlohmann::ordered_json;

Json MessageToJson(const google::protobuf::Message& message);
// `path` is the place of `json` in the document, for errors: "blocks[0].ops[3]".
Status MessageFromJson(const Json& json, const std::string& path, google::protobuf::Message& message);

}  // namespace penstock
