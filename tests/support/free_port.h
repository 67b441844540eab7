// A port of 127.0.0.1 that nothing uses, reserved until this process ends: the system gives it to nobody
// else, and a connection to it is refused until a server binds it with SO_REUSEADDR, as gRPC does.
#pragma once

namespace penstock::test {

int FreePort();

}  // namespace penstock::test
