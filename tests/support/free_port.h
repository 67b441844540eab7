// Reserves an unused port of 127.0.0.1 until this process ends: the system assigns it to no other process,
// and refuses connections to it until a server binds it with SO_REUSEADDR, as gRPC does.
#pragma once

namespace penstock::test {

int FreePort();

}  // namespace penstock::test
