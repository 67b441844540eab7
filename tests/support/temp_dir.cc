#include "tests/support/temp_dir.h"

#include <stdlib.h>

#include <system_error>

#include "framework/base/check.h"

namespace penstock::test {
namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string path = (fs::temp_directory_path() / "penstock-XXXXXX").string();
  PENSTOCK_CHECK(mkdtemp(path.data()) != nullptr, "no temporary folder can be made");
  path_ = path;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace penstock::test
