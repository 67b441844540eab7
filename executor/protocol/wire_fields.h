// Where each message has its fields on the native wire: one row per message, from which the codec derives
// both directions (native_codec.cc). A row is constant: a message keeps the place of each field.
//
//   kWire<Pull>       // kind kPull; `at` is in the envelope's variable and chunk, `version` in its step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "executor/protocol/envelope.h"
#include "executor/protocol/events.h"

namespace penstock::protocol {

// A number in a field of the envelope.
template <typename M, typename T, typename Place>
struct HeadField {
  T M::*field;
  Place Envelope::*place;
};
// A chunk, in the envelope's variable and chunk. An optional one that is absent has kNoVariable there.
template <typename M, typename T>
struct ChunkField {
  T M::*field;
};
inline constexpr std::uint32_t kNoVariable = 0xffffffff;
// The number of rows of a push, or 2^63 and the bits of its threshold, in the envelope's credit.
struct RowsField {};
inline constexpr std::uint64_t kCompressed = std::uint64_t{1} << 63;
// The body; an empty text has none, and an ok status neither (bodies.h).
template <typename M, typename T>
struct BodyField {
  T M::*field;
};
// An error, in the body. A receiver that finds no status there has an error too.
template <typename M>
struct ErrorField {
  Status M::*field;
};

template <typename... Fields>
struct WireRow {
  MessageKind kind;
  std::tuple<Fields...> fields;
};

template <typename... Fields>
constexpr WireRow<Fields...> OfKind(MessageKind kind, Fields... fields) {
  return {kind, {fields...}};
}

namespace in {

template <typename M, typename T>
constexpr HeadField<M, T, std::uint64_t> Step(T M::*field) {
  return {field, &Envelope::step};
}
template <typename M, typename T>
constexpr HeadField<M, T, std::uint64_t> Credit(T M::*field) {
  return {field, &Envelope::credit};
}
// Only of events: a reply has the durable version there.
template <typename M, typename T>
constexpr HeadField<M, T, std::uint64_t> Largest(T M::*field) {
  return {field, &Envelope::durable_version};
}
template <typename M, typename T>
constexpr HeadField<M, T, std::uint32_t> Variable(T M::*field) {
  return {field, &Envelope::variable};
}
template <typename M, typename T>
constexpr HeadField<M, T, std::uint32_t> Chunk(T M::*field) {
  return {field, &Envelope::chunk};
}
template <typename M, typename T>
constexpr HeadField<M, T, std::uint32_t> Part(T M::*field) {
  return {field, &Envelope::part};
}
template <typename M, typename T>
constexpr ChunkField<M, T> At(T M::*field) {
  return {field};
}
template <typename M, typename T>
constexpr BodyField<M, T> Body(T M::*field) {
  return {field};
}
template <typename M>
constexpr ErrorField<M> Error(Status M::*field) {
  return {field};
}

}  // namespace in

template <typename M>
inline constexpr auto kWire = nullptr;

// --- Events.

template <>
inline constexpr auto kWire<Hello> = OfKind(MessageKind::kHello, in::Step(&Hello::step),
                                            in::Body(&Hello::body));
template <>
inline constexpr auto kWire<Push> = OfKind(MessageKind::kPush, in::At(&Push::at), in::Step(&Push::step),
                                           in::Part(&Push::part), RowsField{}, in::Body(&Push::bytes),
                                           in::Largest(&Push::largest));
template <>
inline constexpr auto kWire<EndStep> = OfKind(MessageKind::kEndStep, in::Step(&EndStep::step),
                                              in::Body(&EndStep::variables));
template <>
inline constexpr auto kWire<CountStep> = OfKind(MessageKind::kCountStep, in::Step(&CountStep::step));
template <>
inline constexpr auto kWire<Pull> = OfKind(MessageKind::kPull, in::At(&Pull::at), in::Step(&Pull::version));
template <>
inline constexpr auto kWire<PullRows> = OfKind(MessageKind::kPullRows, in::At(&PullRows::at),
                                               in::Step(&PullRows::version), in::Part(&PullRows::request),
                                               in::Body(&PullRows::ids));
template <>
inline constexpr auto kWire<PullChanged> = OfKind(MessageKind::kPullChanged,
                                                  in::Variable(&PullChanged::variable),
                                                  in::Step(&PullChanged::version));
template <>
inline constexpr auto kWire<Save> = OfKind(MessageKind::kSave, in::Step(&Save::version),
                                           in::Part(&Save::request), in::Body(&Save::body));
template <>
inline constexpr auto kWire<Ask> = OfKind(MessageKind::kAsk, in::At(&Ask::about), in::Step(&Ask::step),
                                          in::Body(&Ask::waits_for));
template <>
inline constexpr auto kWire<Complete> = OfKind(MessageKind::kComplete);
template <>
inline constexpr auto kWire<Failure> = OfKind(MessageKind::kError, in::Error(&Failure::why));
template <>
inline constexpr auto kWire<ServerHello> = OfKind(MessageKind::kServerHello,
                                                  in::Variable(&ServerHello::server),
                                                  in::Body(&ServerHello::body));
template <>
inline constexpr auto kWire<Sums> = OfKind(MessageKind::kSums, in::Step(&Sums::step), in::Body(&Sums::bytes));
template <>
inline constexpr auto kWire<RequestCut> = OfKind(MessageKind::kRequestCut, in::Step(&RequestCut::step));
template <>
inline constexpr auto kWire<DeclareKey> = OfKind(MessageKind::kDeclareKey, in::Part(&DeclareKey::request),
                                                 in::Body(&DeclareKey::body));
template <>
inline constexpr auto kWire<SetOptimizer> = OfKind(MessageKind::kSetOptimizer,
                                                   in::Step(&SetOptimizer::number),
                                                   in::Part(&SetOptimizer::keeps_state),
                                                   in::Body(&SetOptimizer::text));
template <>
inline constexpr auto kWire<Barrier> = OfKind(MessageKind::kBarrier, in::Step(&Barrier::number));
template <>
inline constexpr auto kWire<CutKeys> = OfKind(MessageKind::kCutKeys, in::Step(&CutKeys::step),
                                              in::Body(&CutKeys::pushes));
template <>
inline constexpr auto kWire<CountGone> = OfKind(MessageKind::kCountGone, in::Part(&CountGone::request));

// --- Replies.

template <>
inline constexpr auto kWire<Welcome> = OfKind(MessageKind::kWelcome, in::Step(&Welcome::steps_ended),
                                              in::Credit(&Welcome::first_step), in::Body(&Welcome::body));
template <>
inline constexpr auto kWire<Pushed> = OfKind(MessageKind::kPushed, in::At(&Pushed::at),
                                             in::Step(&Pushed::step), in::Part(&Pushed::part),
                                             in::Credit(&Pushed::welcome_below));
template <>
inline constexpr auto kWire<StepEnded> = OfKind(MessageKind::kStepEnded, in::Step(&StepEnded::step));
template <>
inline constexpr auto kWire<StepCounted> = OfKind(MessageKind::kStepCounted, in::Step(&StepCounted::step));
template <>
inline constexpr auto kWire<Pulled> = OfKind(MessageKind::kPulled, in::At(&Pulled::at),
                                             in::Step(&Pulled::version), in::Part(&Pulled::part),
                                             in::Credit(&Pulled::welcome_below), in::Body(&Pulled::bytes));
template <>
inline constexpr auto kWire<PulledNewest> = OfKind(MessageKind::kPulledNewest, in::At(&PulledNewest::at),
                                                   in::Step(&PulledNewest::version),
                                                   in::Credit(&PulledNewest::updates),
                                                   in::Part(&PulledNewest::part),
                                                   in::Body(&PulledNewest::bytes));
template <>
inline constexpr auto kWire<Gone> = OfKind(MessageKind::kGone, in::At(&Gone::at), in::Step(&Gone::version),
                                           in::Credit(&Gone::welcome_below));
template <>
inline constexpr auto kWire<Rows> = OfKind(MessageKind::kRows, in::Variable(&Rows::variable),
                                           in::Credit(&Rows::request), in::Step(&Rows::version),
                                           in::Part(&Rows::part), in::Chunk(&Rows::updates),
                                           in::Body(&Rows::bytes));
template <>
inline constexpr auto kWire<RowsGone> = OfKind(MessageKind::kRowsGone, in::Variable(&RowsGone::variable),
                                               in::Credit(&RowsGone::request), in::Step(&RowsGone::version));
template <>
inline constexpr auto kWire<Credit> = OfKind(MessageKind::kCredit, in::At(&Credit::at),
                                             in::Credit(&Credit::welcome_below));
template <>
inline constexpr auto kWire<Saved> = OfKind(MessageKind::kSaved, in::Part(&Saved::request),
                                            in::Body(&Saved::status));
template <>
inline constexpr auto kWire<Answer> = OfKind(MessageKind::kAnswer, in::At(&Answer::at),
                                             in::Step(&Answer::step), in::Credit(&Answer::welcome_below),
                                             in::Body(&Answer::lacking));
template <>
inline constexpr auto kWire<ChangedRows> =
    OfKind(MessageKind::kChangedRows, in::Variable(&ChangedRows::variable), in::Step(&ChangedRows::version),
           in::Chunk(&ChangedRows::updates), in::Credit(&ChangedRows::rows), in::Part(&ChangedRows::part),
           in::Body(&ChangedRows::bytes));
template <>
inline constexpr auto kWire<Left> = OfKind(MessageKind::kLeft, in::Credit(&Left::trainer),
                                           in::Step(&Left::steps));
template <>
inline constexpr auto kWire<Completed> = OfKind(MessageKind::kCompleted);
template <>
inline constexpr auto kWire<ServerWelcome> = OfKind(MessageKind::kServerWelcome);
template <>
inline constexpr auto kWire<SumsTaken> = OfKind(MessageKind::kSumsTaken, in::Step(&SumsTaken::step));
template <>
inline constexpr auto kWire<Durable> = OfKind(MessageKind::kDurable);
template <>
inline constexpr auto kWire<KeyDeclared> = OfKind(MessageKind::kKeyDeclared, in::Part(&KeyDeclared::request),
                                                  in::Variable(&KeyDeclared::variable),
                                                  in::Credit(&KeyDeclared::welcome_below),
                                                  in::Body(&KeyDeclared::body));
template <>
inline constexpr auto kWire<OptimizerSet> = OfKind(MessageKind::kOptimizerSet,
                                                   in::Step(&OptimizerSet::number),
                                                   in::Body(&OptimizerSet::status));
template <>
inline constexpr auto kWire<BarrierPassed> = OfKind(MessageKind::kBarrierPassed,
                                                    in::Step(&BarrierPassed::number));
template <>
inline constexpr auto kWire<KeysCut> = OfKind(MessageKind::kKeysCut, in::Step(&KeysCut::step));
template <>
inline constexpr auto kWire<GoneCounted> = OfKind(MessageKind::kGoneCounted, in::Part(&GoneCounted::request),
                                                  in::Step(&GoneCounted::workers));

}  // namespace penstock::protocol
