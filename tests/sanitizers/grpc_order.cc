// Tells ThreadSanitizer the order in which gRPC runs its operations; linked to each program of the preset
// `tsan`.
//
// Debian's gRPC is not instrumented: it passes work between threads by atomics and Abseil's mutexes, which
// ThreadSanitizer does not see. The functions below have the names of gRPC functions, so that calls of the
// program and of libgrpc++ reach them; each calls gRPC's own function and declares the order that gRPC
// guarantees:
//
//   a batch           starts before its tag runs; each reaction of a reactor completes a batch
//   OnDone, OnCancel  are scheduled before they run: the thread that takes them from a queue of gRPC's
//                     executor locks its gpr_mu after the thread that put them there
//   a slice's memory  is lent before the slice releases it
//   a server          starts before it receives calls
//
// No other order is declared, so ThreadSanitizer checks our own code on gRPC's threads as on any other.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/sync.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>
#include <utility>

namespace {

// gRPC's own function of that name.
template <typename Function>
Function* InGrpc(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Stands for the tag of a batch and is gone when that is run. gRPC's callback API knows no tags but these.
class BatchTag : public grpc_completion_queue_functor {
 public:
  explicit BatchTag(grpc_completion_queue_functor* tag) : grpc_completion_queue_functor(), tag_(tag) {
    functor_run = &Run;
    inlineable = tag->inlineable;
    __tsan_release(this);
  }

 private:
  static void Run(grpc_completion_queue_functor* functor, int ok) {
    __tsan_acquire(functor);
    auto* const batch = static_cast<BatchTag*>(functor);
    grpc_completion_queue_functor* const tag = batch->tag_;
    delete batch;
    tag->functor_run(tag, ok);
  }

  grpc_completion_queue_functor* const tag_;
};

struct SliceMemory {
  static void GiveBack(void* memory) {
    __tsan_acquire(memory);
    const SliceMemory slice = *static_cast<SliceMemory*>(memory);
    delete static_cast<SliceMemory*>(memory);
    slice.destroy(slice.owner);
  }
  void (*destroy)(void*);
  void* owner;
};

// While a thread hands a reaction to gRPC's executor, whose queues have a gpr_mu each.
thread_local bool handing_on = false;

template <typename Function>
void HandOn(const Function& in_grpc) {
  handing_on = true;
  in_grpc();
  handing_on = false;
}

char started;  // its address stands for the start of all servers
char batches;  // and for the start of all batches: OnDone comes after all of its call

}  // namespace

namespace grpc::internal {

void ServerCallbackCall::ScheduleOnDone(bool here) {
  static const auto in_grpc =
      InGrpc<void(ServerCallbackCall*, bool)>("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&batches);
  HandOn([&] { in_grpc(this, here); });
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static const auto in_grpc = InGrpc<void(ServerCallbackCall*, ServerReactor*)>(
      "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  HandOn([&] { in_grpc(this, reactor); });
}

void ClientReactor::InternalScheduleOnDone(Status status) {
  static const auto in_grpc = InGrpc<void(ClientReactor*, Status)>(
      "_ZN4grpc8internal13ClientReactor22InternalScheduleOnDoneENS_6StatusE");
  HandOn([&] { in_grpc(this, std::move(status)); });
}

}  // namespace grpc::internal

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, std::size_t count, void* tag,
                                      void* reserved) {
  static const auto in_grpc = InGrpc<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_acquire(&started);
  __tsan_release(&batches);
  auto* const batch = new BatchTag(static_cast<grpc_completion_queue_functor*>(tag));
  const grpc_call_error error = in_grpc(call, ops, count, batch, reserved);
  if (error != GRPC_CALL_OK) delete batch;
  return error;
}

void grpc_server_start(grpc_server* server) {
  static const auto in_grpc = InGrpc<decltype(grpc_server_start)>("grpc_server_start");
  __tsan_release(&started);
  in_grpc(server);
}

grpc_slice grpc_slice_new_with_user_data(void* bytes, std::size_t size, void (*destroy)(void*), void* owner) {
  static const auto in_grpc =
      InGrpc<decltype(grpc_slice_new_with_user_data)>("grpc_slice_new_with_user_data");
  auto* const memory = new SliceMemory{destroy, owner};
  __tsan_release(memory);
  return in_grpc(bytes, size, &SliceMemory::GiveBack, memory);
}

void gpr_mu_lock(gpr_mu* mutex) {
  static const auto in_grpc = InGrpc<decltype(gpr_mu_lock)>("gpr_mu_lock");
  in_grpc(mutex);
  __tsan_acquire(mutex);
}

int gpr_mu_trylock(gpr_mu* mutex) {
  static const auto in_grpc = InGrpc<decltype(gpr_mu_trylock)>("gpr_mu_trylock");
  const int locked = in_grpc(mutex);
  if (locked != 0) __tsan_acquire(mutex);
  return locked;
}

void gpr_mu_unlock(gpr_mu* mutex) {
  static const auto in_grpc = InGrpc<decltype(gpr_mu_unlock)>("gpr_mu_unlock");
  if (handing_on) __tsan_release(mutex);
  in_grpc(mutex);
}

int gpr_cv_wait(gpr_cv* condition, gpr_mu* mutex, gpr_timespec deadline) {
  static const auto in_grpc = InGrpc<decltype(gpr_cv_wait)>("gpr_cv_wait");
  const int timed_out = in_grpc(condition, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

}  // extern "C"
