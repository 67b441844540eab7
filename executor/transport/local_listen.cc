#include "executor/transport/local_listen.h"

#include <memory>
#include <utility>

#include "executor/transport/local_link.h"

namespace penstock::transport {

void LocalServer::Enter(Descriptor socket, const std::string& id) {
  const auto link = std::make_shared<LocalLink>(std::move(socket), handler_, LocalEnd::kServer,
                                                [this, id] { gate_.Admit(id); });
  const auto carry = [this, link, id] {
    link->Run();
    gate_.Leave(id);
  };
  if (!threads_.Start(carry, [link] { link->Abort(); })) gate_.Leave(id);  // the client will retry
}

}  // namespace penstock::transport
