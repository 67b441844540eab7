#include "executor/transport/guest_threads.h"

#include <system_error>
#include <utility>

namespace penstock::transport {

GuestThreads::~GuestThreads() {
  for (Guest& guest : guests_) guest.abort();
  for (Guest& guest : guests_) guest.thread.join();
}

bool GuestThreads::Start(std::function<void()> carry, std::function<void()> abort) {
  guests_.remove_if([](Guest& guest) {
    if (!guest.over) return false;
    guest.thread.join();
    return true;
  });
  Guest& guest = guests_.emplace_back();
  guest.abort = std::move(abort);
  try {
    guest.thread = std::thread([&guest, carry = std::move(carry)] {
      carry();
      guest.over = true;
    });
  } catch (const std::system_error&) {
    guests_.pop_back();
    return false;
  }
  return true;
}

}  // namespace penstock::transport
