#include "executor/transport/local_listen.h"

#include <system_error>
#include <utility>

namespace penstock::transport {

LocalServer::~LocalServer() {
  for (Guest& guest : guests_) guest.link->Abort();
  for (Guest& guest : guests_) guest.thread.join();
}

void LocalServer::Enter(Descriptor socket, const std::string& id) {
  DropOver();
  Guest& guest = guests_.emplace_back();
  guest.link = std::make_shared<LocalLink>(std::move(socket), handler_, LocalEnd::kServer,
                                           [this, id] { gate_.Admit(id); });
  try {
    guest.thread = std::thread([this, &guest, id] {
      guest.link->Run();
      gate_.Leave(id);
      guest.over = true;
    });
  } catch (const std::system_error&) {  // too many threads: the client comes again
    gate_.Leave(id);
    guests_.pop_back();
  }
}

void LocalServer::DropOver() {
  guests_.remove_if([](Guest& guest) {
    if (!guest.over) return false;
    guest.thread.join();
    return true;
  });
}

}  // namespace penstock::transport
