// What a pserver does with each message of a trainer that it has admitted.
#include "executor/protocol/failure.h"
#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

constexpr std::size_t kWaitsForMax = 300;  // characters that a trainer says of what it waits for

// At most `limit` bytes, and none that could end a line.
std::string Printable(std::string text, std::size_t limit) {
  if (text.size() > limit) text.resize(limit);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

void Pserver::Dispatch(const Caller& caller, Actions& actions) {
  const auto known = trainer_of_.find(caller.connection.get());
  if (known == trainer_of_.end() && caller.envelope.kind == protocol::MessageKind::kError)
    return;  // it was turned away
  if (known == trainer_of_.end() || static_cast<std::uint32_t>(known->second) != caller.envelope.trainer ||
      admission_.incarnation(known->second) != caller.envelope.incarnation) {
    Refuse(caller.connection,
           FailedPrecondition("E-rpc-hello", "a trainer's first message must be its hello"));
    return;
  }
  Trainer& trainer = trainers_[caller.envelope.trainer];
  trainer.heard = options_.clock->Now();
  if (caller.envelope.kind != protocol::MessageKind::kAsk) trainer.active = trainer.heard;
  if (!admission_.terms(known->second).Accepts(caller.envelope.contract)) {
    Refuse(caller.connection, InvalidArgument("E-plan-mismatch", "plan: trainer ", known->second,
                                              " changed its plan on the way"));
    return;
  }
  switch (caller.envelope.kind) {
    case protocol::MessageKind::kPush:
      return OnPush(caller, actions);
    case protocol::MessageKind::kEndStep:
      return OnEndStep(caller, actions);
    case protocol::MessageKind::kPull:
      return OnPull(caller, actions);
    case protocol::MessageKind::kPullRows:
      return OnPullRows(caller, actions);
    case protocol::MessageKind::kSave:
      return OnSave(caller, actions);
    case protocol::MessageKind::kAsk:
      return OnAsk(caller);
    case protocol::MessageKind::kComplete:
      trainers_[caller.envelope.trainer].worked = true;
      return machine_->Complete(known->second, actions);
    case protocol::MessageKind::kError: {  // the trainer failed and says why before it goes
      if (Forget(known->second)) return;
      const Status why = protocol::ReadStatus(caller.message.body.ToText());
      React(known->second, protocol::FailureOf(StrCat("trainer ", known->second), why), actions);
      return;
    }
    default:
      Refuse(caller.connection, DataLoss("E-rpc-envelope", "trainer ", known->second,
                                         " sent a message only a pserver may send"));
  }
}

void Pserver::OnPush(const Caller& caller, Actions& actions) {
  const TrainerTerms& terms = admission_.terms(static_cast<int>(caller.envelope.trainer));
  std::optional<int> param = terms.ParamOfPush(caller.envelope.variable, caller.envelope.contract);
  const bool initial = !param && caller.envelope.step == 0;
  if (initial) param = terms.ParamOfInitial(caller.envelope.variable);
  if (!param) {
    Refuse(caller.connection,
           InvalidArgument("E-rpc-variable", "trainer ", caller.envelope.trainer, " pushed variable ",
                           caller.envelope.variable, ", which is neither a gradient nor a first value"));
    return;
  }
  trainers_[caller.envelope.trainer].worked = true;
  machine_->Push({.trainer = static_cast<int>(caller.envelope.trainer),
                  .param = *param,
                  .chunk = static_cast<int>(caller.envelope.chunk),
                  .step = caller.envelope.step,
                  .part = caller.envelope.part,
                  .bytes = caller.message.body,
                  .rows = caller.envelope.credit,
                  .initial = initial},
                 actions);
}

void Pserver::OnEndStep(const Caller& caller, Actions& actions) {
  const TrainerTerms& terms = admission_.terms(static_cast<int>(caller.envelope.trainer));
  const Result<std::vector<std::uint32_t>> variables = protocol::ReadVariables(caller.message.body.ToText());
  if (!variables.ok()) {
    Refuse(caller.connection, variables.status());
    return;
  }
  trainers_[caller.envelope.trainer].worked = true;
  std::set<int> params;
  for (const std::uint32_t variable : *variables) {
    if (const std::optional<int> param = terms.ParamOfGrad(variable)) params.insert(*param);
  }
  machine_->EndStep(static_cast<int>(caller.envelope.trainer), caller.envelope.step, params, actions);
}

void Pserver::OnPull(const Caller& caller, Actions& actions) {
  const int trainer = static_cast<int>(caller.envelope.trainer);
  const std::optional<int> param = admission_.terms(trainer).ParamOfPull(caller.envelope.variable);
  if (!param) {
    Refuse(caller.connection,
           InvalidArgument("E-rpc-variable", "trainer ", caller.envelope.trainer, " pulled variable ",
                           caller.envelope.variable, ", which is no parameter"));
    return;
  }
  machine_->Pull(trainer, *param, static_cast<int>(caller.envelope.chunk), caller.envelope.step, actions);
}

void Pserver::OnPullRows(const Caller& caller, Actions& actions) {
  const int trainer = static_cast<int>(caller.envelope.trainer);
  const std::optional<int> param = admission_.terms(trainer).ParamOfTable(caller.envelope.variable);
  if (!param) {
    Refuse(caller.connection,
           InvalidArgument("E-rpc-variable", "trainer ", caller.envelope.trainer,
                           " asked for rows of variable ", caller.envelope.variable, ", which is no table"));
    return;
  }
  if (const Status ids = store_->CheckIds(*param, trainer, caller.message.body); !ids.ok()) {
    Refuse(caller.connection, ids);
    return;
  }
  machine_->PullRows({.trainer = trainer,
                      .param = *param,
                      .version = caller.envelope.step,
                      .variable = caller.envelope.variable,
                      .request = caller.envelope.part,
                      .padding = admission_.terms(trainer).PaddingOf(caller.envelope.variable),
                      .ids = caller.message.body},
                     actions);
}

void Pserver::OnSave(const Caller& caller, Actions& actions) {
  const int trainer = static_cast<int>(caller.envelope.trainer);
  const Result<protocol::SaveBody> body = protocol::ReadSave(caller.message.body.ToText());
  if (!body.ok()) {
    Refuse(caller.connection, body.status());
    return;
  }
  const auto refuse = [&](Status why) {  // the trainer is told, and may go on
    SendTo(trainer, {.kind = protocol::MessageKind::kSaved, .part = caller.envelope.part},
           Payload::Of(protocol::WriteStatus(std::move(why).In(StrCat("pserver ", facts_.address)))));
  };
  if (trainer != 0) {
    return refuse(FailedPrecondition("E-server-save-trainer", "trainer ", trainer, " asks it to save ",
                                     body->table, "; only trainer 0 may"));
  }
  const int param = store_->FindTable(body->table);
  if (param < 0) {
    return refuse(
        InvalidArgument("E-server-save", "it holds no table ", body->table, " that is dealt out by id"));
  }
  Result<std::string> file = checkpoints_.Claim(body->file);
  if (!file.ok()) return refuse(std::move(file).status());
  machine_->Save({.trainer = trainer,
                  .param = param,
                  .version = caller.envelope.step,
                  .request = caller.envelope.part,
                  .file = *std::move(file)},
                 actions);
}

void Pserver::OnAsk(const Caller& caller) {
  const protocol::Envelope& e = caller.envelope;
  Trainer& trainer = trainers_[e.trainer];
  trainer.waits_for = Printable(caller.message.body.ToText(), kWaitsForMax);
  trainer.waits_said = trainer.heard;
  const TrainerTerms& terms = admission_.terms(static_cast<int>(e.trainer));
  std::optional<int> param = terms.ParamOfPull(e.variable);
  if (!param) param = terms.ParamOfTable(e.variable);
  if (!param) param = terms.ParamOfGrad(e.variable);
  if (!param || e.chunk >= store_->chunk_count(*param)) return;
  SendTo(static_cast<int>(e.trainer),
         {.kind = protocol::MessageKind::kAnswer,
          .step = e.step,
          .credit = machine_->credit(*param, static_cast<int>(e.chunk)),
          .variable = e.variable,
          .chunk = e.chunk},
         Payload::Of(Lacking(*param, static_cast<int>(e.chunk))));
}

// "trainer 3 (last heard 11 s ago)"; empty if the chunk waits for nobody.
std::string Pserver::Lacking(int param, int chunk) const {
  std::string text;
  for (const int t : machine_->Lacks(param, chunk)) {
    const Trainer& trainer = trainers_[static_cast<std::size_t>(t)];
    if (!text.empty()) text += ", ";
    text +=
        StrCat("trainer ", t,
               admission_.Admitted(t)
                   ? StrCat(" (last heard ", WholeSeconds(options_.clock->Now() - trainer.heard), " s ago)")
                   : std::string(" (not started yet)"));
  }
  return text;
}

}  // namespace penstock::pserver
