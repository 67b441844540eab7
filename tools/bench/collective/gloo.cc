#ifdef PENSTOCK_BENCH_GLOO
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <filesystem>
#endif

#include "tools/bench/collective/all_reducer.h"

namespace penstock::bench {

#ifdef PENSTOCK_BENCH_GLOO

namespace {

class GlooReducer : public AllReducer {
 public:
  explicit GlooReducer(const BenchRank& rank) : folder_(std::filesystem::temp_directory_path() / rank.job) {
    std::filesystem::create_directories(folder_);
    gloo::rendezvous::FileStore store(folder_.string());
    auto context = std::make_shared<gloo::rendezvous::Context>(rank.rank, rank.ranks);
    std::shared_ptr<gloo::transport::Device> loopback =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    context->connectFullMesh(store, loopback);
    context_ = std::move(context);
  }
  ~GlooReducer() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void Sum(float* values, std::size_t count) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(values, count);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }

 private:
  const std::filesystem::path folder_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

std::unique_ptr<AllReducer> MakeGlooReducer(const BenchRank& rank) {
  return std::make_unique<GlooReducer>(rank);
}

#else

std::unique_ptr<AllReducer> MakeGlooReducer(const BenchRank&) { return nullptr; }

#endif

}  // namespace penstock::bench
