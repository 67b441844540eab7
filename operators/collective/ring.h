// What the collective ops share: they all need a communicator.
#pragma once

namespace penstock {

// For OpDef::NotBuilt.
inline constexpr char kNoCommunicator[] =
    "this executor has no communicator; transpile with mode=\"pserver\"";

}  // namespace penstock
