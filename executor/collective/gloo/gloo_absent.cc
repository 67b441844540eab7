// Replaces gloo_links.cc in a build without Gloo.
#ifndef PENSTOCK_WITH_GLOO
#include "executor/collective/gloo/gloo_links.h"

namespace penstock::collective {

bool HasGloo() { return false; }

Result<std::unique_ptr<Links>> ConnectGloo(const GlooRendezvous&) {
  return Unimplemented("E-collective-backend",
                       "this build has no Gloo (Debian's libgloo-dev); the backends that it has are "
                       "shared_memory and threads");
}

}  // namespace penstock::collective
#endif
