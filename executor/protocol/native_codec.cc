#include "executor/protocol/native_codec.h"

#include <utility>

namespace penstock::protocol {
namespace {

constexpr std::uint32_t kNoVariable = 0xffffffff;  // in an Ask without a chunk

struct Written {
  Envelope envelope;
  Payload body;
};

// Maps the fields of each message to the envelope, whose fields have several meanings each.

Written Write(const Hello& m) {
  return {{.kind = MessageKind::kHello, .step = m.step}, Payload::Of(WriteHello(m.body))};
}
Written Write(const Push& m) {
  return {{.kind = MessageKind::kPush,
           .step = m.step,
           .credit = m.rows,
           .variable = m.at.variable,
           .chunk = m.at.chunk,
           .part = m.part},
          m.bytes};
}
Written Write(const EndStep& m) {
  return {{.kind = MessageKind::kEndStep, .step = m.step}, Payload::Of(WriteVariables(m.variables))};
}
Written Write(const CountStep& m) { return {{.kind = MessageKind::kCountStep, .step = m.step}, {}}; }
Written Write(const Pull& m) {
  return {{.kind = MessageKind::kPull, .step = m.version, .variable = m.at.variable, .chunk = m.at.chunk},
          {}};
}
Written Write(const PullRows& m) {
  return {{.kind = MessageKind::kPullRows, .step = m.version, .variable = m.variable, .part = m.request},
          m.ids};
}
Written Write(const PullChanged& m) {
  return {{.kind = MessageKind::kPullChanged, .step = m.version, .variable = m.variable}, {}};
}
Written Write(const Save& m) {
  return {{.kind = MessageKind::kSave, .step = m.version, .part = m.request}, Payload::Of(WriteSave(m.body))};
}
Written Write(const Ask& m) {
  const ChunkRef at = m.about.value_or(ChunkRef{.variable = kNoVariable, .chunk = 0});
  return {{.kind = MessageKind::kAsk, .step = m.step, .variable = at.variable, .chunk = at.chunk},
          m.waits_for.empty() ? Payload() : Payload::Of(m.waits_for)};
}
Written Write(const Complete&) { return {{.kind = MessageKind::kComplete}, {}}; }
Written Write(const Failure& m) { return {{.kind = MessageKind::kError}, Payload::Of(WriteStatus(m.why))}; }
Written Write(const ServerHello& m) {
  return {{.kind = MessageKind::kServerHello, .variable = m.server}, Payload::Of(WriteHello(m.body))};
}
Written Write(const Sums& m) { return {{.kind = MessageKind::kSums, .step = m.step}, m.bytes}; }

Written Write(const Welcome& m) {
  return {{.kind = MessageKind::kWelcome, .step = m.steps_ended}, Payload::Of(WriteWelcome(m.body))};
}
Written Write(const Pushed& m) {
  return {{.kind = MessageKind::kPushed,
           .step = m.step,
           .credit = m.welcome_below,
           .variable = m.at.variable,
           .chunk = m.at.chunk,
           .part = m.part},
          {}};
}
Written Write(const StepEnded& m) { return {{.kind = MessageKind::kStepEnded, .step = m.step}, {}}; }
Written Write(const StepCounted& m) { return {{.kind = MessageKind::kStepCounted, .step = m.step}, {}}; }
Written Write(const Pulled& m) {
  return {{.kind = MessageKind::kPulled,
           .step = m.version,
           .credit = m.welcome_below,
           .variable = m.at.variable,
           .chunk = m.at.chunk,
           .part = m.part},
          m.bytes};
}
Written Write(const PulledNewest& m) {
  return {{.kind = MessageKind::kPulledNewest,
           .step = m.version,
           .credit = m.updates,
           .variable = m.at.variable,
           .chunk = m.at.chunk,
           .part = m.part},
          m.bytes};
}
Written Write(const Gone& m) {
  return {{.kind = MessageKind::kGone,
           .step = m.version,
           .credit = m.welcome_below,
           .variable = m.at.variable,
           .chunk = m.at.chunk},
          {}};
}
Written Write(const Rows& m) {
  return {{.kind = MessageKind::kRows,
           .step = m.version,
           .credit = m.request,
           .variable = m.variable,
           .chunk = m.updates,
           .part = m.part},
          m.bytes};
}
Written Write(const ChangedRows& m) {
  return {{.kind = MessageKind::kChangedRows,
           .step = m.version,
           .credit = m.rows,
           .variable = m.variable,
           .chunk = m.updates,
           .part = m.part},
          m.bytes};
}
Written Write(const RowsGone& m) {
  return {{.kind = MessageKind::kRowsGone, .step = m.version, .credit = m.request, .variable = m.variable},
          {}};
}
Written Write(const Credit& m) {
  return {{.kind = MessageKind::kCredit,
           .credit = m.welcome_below,
           .variable = m.at.variable,
           .chunk = m.at.chunk},
          {}};
}
Written Write(const Saved& m) {
  return {{.kind = MessageKind::kSaved, .part = m.request},
          m.status.ok() ? Payload() : Payload::Of(WriteStatus(m.status))};
}
Written Write(const Answer& m) {
  return {{.kind = MessageKind::kAnswer,
           .step = m.step,
           .credit = m.welcome_below,
           .variable = m.at.variable,
           .chunk = m.at.chunk},
          Payload::Of(m.lacking)};
}
Written Write(const Left& m) {
  return {{.kind = MessageKind::kLeft, .step = m.steps, .credit = m.trainer}, {}};
}
Written Write(const Completed&) { return {{.kind = MessageKind::kCompleted}, {}}; }
Written Write(const ServerWelcome&) { return {{.kind = MessageKind::kServerWelcome}, {}}; }
Written Write(const SumsTaken& m) { return {{.kind = MessageKind::kSumsTaken, .step = m.step}, {}}; }

Message SealFor(const Sender& sender, Written written, BodyChecksum checksum) {
  written.envelope.job = sender.job;
  written.envelope.contract = sender.contract;
  written.envelope.incarnation = sender.incarnation;
  written.envelope.durable_version = sender.durable_version;
  written.envelope.trainer = sender.trainer;
  return Seal(written.envelope, std::move(written.body), checksum);
}

Sender SenderOf(const Envelope& e) {
  return {.job = e.job,
          .contract = e.contract,
          .incarnation = e.incarnation,
          .trainer = e.trainer,
          .durable_version = e.durable_version};
}

ChunkRef ChunkOf(const Envelope& e) { return {.variable = e.variable, .chunk = e.chunk}; }

Result<Event> EventOf(const Envelope& e, const Payload& body) {
  switch (e.kind) {
    case MessageKind::kHello: {
      PENSTOCK_ASSIGN_OR_RETURN(HelloBody hello, ReadHello(body.ToText()));
      return Event(Hello{.step = e.step, .body = std::move(hello)});
    }
    case MessageKind::kPush:
      return Event(Push{.at = ChunkOf(e), .step = e.step, .part = e.part, .rows = e.credit, .bytes = body});
    case MessageKind::kEndStep: {
      PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::uint32_t> variables, ReadVariables(body.ToText()));
      return Event(EndStep{.step = e.step, .variables = std::move(variables)});
    }
    case MessageKind::kCountStep:
      return Event(CountStep{.step = e.step});
    case MessageKind::kPull:
      return Event(Pull{.at = ChunkOf(e), .version = e.step});
    case MessageKind::kPullRows:
      return Event(PullRows{.variable = e.variable, .version = e.step, .request = e.part, .ids = body});
    case MessageKind::kPullChanged:
      return Event(PullChanged{.variable = e.variable, .version = e.step});
    case MessageKind::kSave: {
      PENSTOCK_ASSIGN_OR_RETURN(SaveBody save, ReadSave(body.ToText()));
      return Event(Save{.version = e.step, .request = e.part, .body = std::move(save)});
    }
    case MessageKind::kAsk:
      return Event(Ask{.about = e.variable == kNoVariable ? std::nullopt : std::optional(ChunkOf(e)),
                       .step = e.step,
                       .waits_for = body.ToText()});
    case MessageKind::kComplete:
      return Event(Complete{});
    case MessageKind::kError:
      return Event(Failure{ReadStatus(body.ToText())});
    case MessageKind::kServerHello: {
      PENSTOCK_ASSIGN_OR_RETURN(HelloBody hello, ReadHello(body.ToText()));
      return Event(ServerHello{.server = e.variable, .body = std::move(hello)});
    }
    case MessageKind::kSums:
      return Event(Sums{.step = e.step, .bytes = body});
    default:
      return DataLoss("E-rpc-envelope", "trainer ", e.trainer, " sent a message only a pserver may send");
  }
}

Result<Reply> ReplyOf(const Envelope& e, const Payload& body) {
  switch (e.kind) {
    case MessageKind::kWelcome: {
      PENSTOCK_ASSIGN_OR_RETURN(WelcomeBody welcome, ReadWelcome(body.ToText()));
      return Reply(Welcome{.steps_ended = e.step, .body = std::move(welcome)});
    }
    case MessageKind::kPushed:
      return Reply(Pushed{.at = ChunkOf(e), .step = e.step, .part = e.part, .welcome_below = e.credit});
    case MessageKind::kStepEnded:
      return Reply(StepEnded{.step = e.step});
    case MessageKind::kStepCounted:
      return Reply(StepCounted{.step = e.step});
    case MessageKind::kPulled:
      return Reply(Pulled{
          .at = ChunkOf(e), .version = e.step, .part = e.part, .welcome_below = e.credit, .bytes = body});
    case MessageKind::kPulledNewest:
      return Reply(PulledNewest{
          .at = ChunkOf(e), .version = e.step, .updates = e.credit, .part = e.part, .bytes = body});
    case MessageKind::kGone:
      return Reply(Gone{.at = ChunkOf(e), .version = e.step, .welcome_below = e.credit});
    case MessageKind::kRows:
      return Reply(Rows{.variable = e.variable,
                        .request = static_cast<std::uint32_t>(e.credit),
                        .version = e.step,
                        .part = e.part,
                        .updates = e.chunk,
                        .bytes = body});
    case MessageKind::kChangedRows:
      return Reply(ChangedRows{.variable = e.variable,
                               .version = e.step,
                               .updates = e.chunk,
                               .rows = e.credit,
                               .part = e.part,
                               .bytes = body});
    case MessageKind::kRowsGone:
      return Reply(RowsGone{
          .variable = e.variable, .request = static_cast<std::uint32_t>(e.credit), .version = e.step});
    case MessageKind::kCredit:
      return Reply(Credit{.at = ChunkOf(e), .welcome_below = e.credit});
    case MessageKind::kSaved:
      return Reply(
          Saved{.request = e.part, .status = body.size() == 0 ? OkStatus() : ReadStatus(body.ToText())});
    case MessageKind::kAnswer:
      return Reply(
          Answer{.at = ChunkOf(e), .step = e.step, .welcome_below = e.credit, .lacking = body.ToText()});
    case MessageKind::kLeft:
      return Reply(Left{.trainer = e.credit, .steps = e.step});
    case MessageKind::kCompleted:
      return Reply(Completed{});
    case MessageKind::kError:
      return Reply(Failure{ReadStatus(body.ToText())});
    case MessageKind::kServerWelcome:
      return Reply(ServerWelcome{});
    case MessageKind::kSumsTaken:
      return Reply(SumsTaken{.step = e.step});
    default:
      return DataLoss("E-rpc-envelope", "a pserver sent a message that only a trainer may send");
  }
}

}  // namespace

Message Encode(const Sender& sender, const Event& event, BodyChecksum checksum) {
  return std::visit([&](const auto& message) { return SealFor(sender, Write(message), checksum); }, event);
}

Message Encode(const Sender& sender, const Reply& reply, BodyChecksum checksum) {
  return std::visit([&](const auto& message) { return SealFor(sender, Write(message), checksum); }, reply);
}

Result<Decoded<Event>> DecodeEvent(const Message& message, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(const Envelope envelope, Open(message, least));
  PENSTOCK_ASSIGN_OR_RETURN(Event event, EventOf(envelope, message.body));
  return Decoded<Event>{SenderOf(envelope), std::move(event)};
}

Result<Decoded<Reply>> DecodeReply(const Message& message, BodyChecksum least) {
  PENSTOCK_ASSIGN_OR_RETURN(const Envelope envelope, Open(message, least));
  PENSTOCK_ASSIGN_OR_RETURN(Reply reply, ReplyOf(envelope, message.body));
  return Decoded<Reply>{SenderOf(envelope), std::move(reply)};
}

}  // namespace penstock::protocol
