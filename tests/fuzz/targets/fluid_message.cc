// Any bytes as a message of Fluid's wire give an error, or a message that serializes and parses back.
#include "executor/protocol/fluid_message.h"

#include "tests/fuzz/targets/target.h"

namespace penstock::fuzz {

void Try(std::string_view input) {
  const Result<protocol::VariableMessage> message =
      protocol::ReadVariableMessage(Payload::Of(std::string(input)));
  if (!message.ok()) {
    MustBeTheInputsFault(message.status());
    return;
  }
  const Result<Payload> bytes = protocol::WriteVariableMessage(*message);
  PENSTOCK_CHECK(bytes.ok(), bytes.status().ToString());
  const Result<protocol::VariableMessage> again = protocol::ReadVariableMessage(*bytes);
  PENSTOCK_CHECK(again.ok(), again.status().ToString());
  const Result<Payload> twice = protocol::WriteVariableMessage(*again);
  PENSTOCK_CHECK(twice.ok() && twice->ToText() == bytes->ToText(),
                 "a message is another one when it is written and read");
}

}  // namespace penstock::fuzz
