// A port of 127.0.0.1 that the system found free a moment ago.
#pragma once

namespace penstock::test {

int FreePort();

}  // namespace penstock::test
