// Links over Gloo's TCP transport. No exception of Gloo's leaves it.
#pragma once

#include <memory>

#include "executor/collective/gloo.h"
#include "executor/collective/links.h"

namespace penstock::collective {

// Errors as MakeGlooGroup.
Result<std::unique_ptr<Links>> ConnectGloo(const GlooRendezvous& rendezvous);

}  // namespace penstock::collective
