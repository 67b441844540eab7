// Lends memory of one process to another process of the host, which reads it in place: the lender's
// bookkeeping, and the borrower's view.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Loans loans, Loans::Make());         // the lender; passes heap.fd() and hold()
//   const std::uint64_t loan = loans.Lend({.owner = body.owner});
//   ...
//   loans.Return(loan, returned);                                  // when the borrower has returned it
//
//   PENSTOCK_ASSIGN_OR_RETURN(BorrowedMemory memory, BorrowedMemory::Map(fd, hold, 0));  // the borrower
//   PENSTOCK_ASSIGN_OR_RETURN(Bytes body, memory.Borrow(at, size, [] { ... tell the lender ... }));
//
// Lent memory does not change until it is returned. After the end of a connection, its borrower may still
// read the memory lent over it. The owners are therefore kept until the borrower's end of a pipe (`hold`)
// closes, with the last borrowed bytes or with the borrower's process. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "executor/transport/descriptor.h"
#include "framework/base/status.h"
#include "framework/runtime/transport.h"

namespace penstock::transport {

class Loans {
 public:
  struct Loan {
    std::shared_ptr<const void> owner;
    std::size_t copied = 0;   // bytes copied in order to be lent
    std::size_t untaken = 0;  // of these, the bytes of messages that the other side has not handled yet
  };

  // kUnavailable E-run-shared-memory: no descriptors are left.
  static Result<Loans> Make();
  Loans(Loans&&) = default;
  Loans& operator=(Loans&&) = delete;
  ~Loans();  // owners may end here

  // The borrower's end of the pipe; its number is passed, and then the end closed here.
  int hold() const { return hold_.get(); }
  void HoldIsPassed() { hold_.Reset(); }

  std::uint64_t Lend(Loan loan);  // a number from 1 on
  Loan* Find(std::uint64_t number);
  // Returns whether the loan existed: a borrower may send any number. Moves its owners to `returned`.
  bool Return(std::uint64_t number, Loan& returned);
  std::size_t copied() const { return copied_; }  // copied bytes of all loans

 private:
  Loans(Descriptor watch, Descriptor hold) : watch_(std::move(watch)), hold_(std::move(hold)) {}

  Descriptor watch_, hold_;
  std::unordered_map<std::uint64_t, Loan> loans_;
  std::uint64_t last_ = 0;
  std::size_t copied_ = 0;
};

class BorrowedMemory {
 public:
  // Pages of returned bodies stay mapped, and count as this process's memory, up to `keep_mapped` bytes for
  // all lenders. kDataLoss E-rpc-frame: not a memory file, or its size could change while it is read.
  // kUnavailable E-run-shared-memory: it cannot be mapped.
  static Result<BorrowedMemory> Map(const Descriptor& memory, Descriptor hold, std::size_t keep_mapped);

  // Returns bytes of the lender. `done` is called once, from any thread, when their last owner is gone.
  // kDataLoss E-rpc-frame: they are not within that memory.
  Result<Bytes> Borrow(std::uint64_t offset, std::size_t size, std::function<void()> done) const;

 private:
  struct Mapping;
  explicit BorrowedMemory(std::shared_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}

  std::shared_ptr<Mapping> mapping_;  // shared with each borrowed body
};

}  // namespace penstock::transport
