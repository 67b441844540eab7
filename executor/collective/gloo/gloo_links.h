// Links over Gloo's TCP transport. Catches Gloo's exceptions.
#pragma once

#include <memory>

#include "executor/collective/gloo/gloo.h"
#include "executor/collective/ring/links.h"

namespace penstock::collective {

// Errors as in MakeGlooGroup.
Result<std::unique_ptr<Links>> ConnectGloo(const GlooRendezvous& rendezvous);

}  // namespace penstock::collective
