#include "executor/process/ring_backend.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "executor/collective/arena/shared_memory.h"
#include "executor/collective/gloo/gloo.h"
#include "executor/collective/hierarchy/hierarchy.h"
#include "executor/collective/mpi/mpi.h"
#include "executor/collective/nccl/nccl.h"
#include "executor/collective/rendezvous/devices.h"
#include "executor/collective/rendezvous/interface.h"
#include "executor/observe/report_times.h"
#include "executor/transport/address.h"

namespace penstock::process {
namespace {

constexpr char kShared[] = "shared_memory", kGloo[] = "gloo", kHierarchical[] = "hierarchical",
               kNccl[] = "nccl", kMpi[] = "mpi";
constexpr char kVariable[] = "PENSTOCK_COLLECTIVE_BACKEND";

using Hosts = std::vector<std::vector<int>>;  // ranks of the ring, by host

// Identifies the host: equal for all processes that can share memory (shared_memory.h).
std::string HostOfThisProcess() {
  std::string boot, space(64, '\0');
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const ssize_t length = readlink("/proc/self/ns/net", space.data(), space.size());
  space.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return StrCat(boot, " ", space, " user ", geteuid());
}

class RingMaker {
 public:
  RingMaker(rendezvous::Store& store, const rendezvous::Ring& ring,
            const rendezvous::Environment& environment, Nanoseconds report_after)
      : store_(store),
        ring_(ring),
        environment_(environment),
        key_(ring.Key()),
        report_after_(report_after) {}

  Result<std::unique_ptr<CollectiveGroup>> Make(int group_ranks) const {
    PENSTOCK_ASSIGN_OR_RETURN(const Hosts hosts, HostsOfRanks());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string backend, ChooseBackend(hosts));
    if (group_ranks > 0 && (environment_(kVariable).empty() || backend == kHierarchical)) {
      PENSTOCK_ASSIGN_OR_RETURN(const Hosts groups, rendezvous::GroupRanks(store_.ranks(), group_ranks));
      return MakeHierarchical(groups, hosts);
    }
    std::vector<int> all(ring_.members.size());
    std::iota(all.begin(), all.end(), 0);
    if (backend == kShared) return MakeShared(key_, all, report_after_);
    if (backend == kGloo) return MakeTcp(StrCat(key_, "/tcp"), all, report_after_);
    if (backend == kNccl) return MakeNccl(hosts, all);
    if (backend == kMpi) return MakeMpi();
    return MakeHierarchical(hosts, hosts);
  }

 private:
  int size() const { return static_cast<int>(ring_.members.size()); }
  std::string Who(int rank) const {
    const int member = ring_.members[static_cast<std::size_t>(rank)];
    return StrCat("rank ", member, " (", store_.addresses()[static_cast<std::size_t>(member)], ")");
  }
  template <typename... Parts>
  Status Refuse(const Parts&... parts) const {
    return InvalidArgument("E-collective-choice", "ring ", ring_.number, ": ", parts...);
  }

  // Publishes `own` and returns the texts of all ranks, by rank.
  Result<std::vector<std::string>> Gather(const std::string& what, std::string own) const {
    const auto key = [&](int rank) { return StrCat(key_, "/", what, "/", rank); };
    PENSTOCK_RETURN_IF_ERROR(store_.Set(key(ring_.rank), std::move(own)));
    std::vector<std::string> all;
    for (int rank = 0; rank < size(); ++rank) {
      PENSTOCK_ASSIGN_OR_RETURN(std::string word, store_.Get(key(rank)));
      all.push_back(std::move(word));
    }
    return all;
  }

  // Hosts are ordered by their first rank.
  Result<Hosts> HostsOfRanks() const {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, Gather("host", HostOfThisProcess()));
    Hosts hosts;
    for (int rank = 0; rank < size(); ++rank) {
      const auto same = [&](const std::vector<int>& host) {
        return names[static_cast<std::size_t>(host.front())] == names[static_cast<std::size_t>(rank)];
      };
      const auto at = std::find_if(hosts.begin(), hosts.end(), same);
      if (at == hosts.end()) {
        hosts.push_back({rank});
      } else {
        at->push_back(rank);
      }
    }
    return hosts;
  }

  Result<std::string> ChooseBackend(const Hosts& hosts) const {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> wanted,
                              Gather("backend", environment_(kVariable)));
    for (int rank = 1; rank < size(); ++rank) {
      const std::string& other = wanted[static_cast<std::size_t>(rank)];
      if (other != wanted.front()) {
        return Refuse(kVariable, " is ", Quote(wanted.front()), " on ", Who(0), " and ", Quote(other), " on ",
                      Who(rank));
      }
    }
    const std::string& name = wanted.front();
    if (name.empty()) {
      if (hosts.size() == 1) return std::string(kShared);
      return std::string(hosts.size() == ring_.members.size() ? kGloo : kHierarchical);
    }
    const std::vector<std::string> known = {kShared, kGloo, kHierarchical, kNccl, kMpi};
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Refuse(kVariable, " is ", Quote(name), ", which is none of ", Join(known, ", "));
    }
    if (name == kShared && hosts.size() > 1) {
      return Refuse(kVariable, " is shared_memory, but ", Who(hosts[0].front()), " and ",
                    Who(hosts[1].front()), " do not share a host");
    }
    return name;
  }

  static int PlaceOf(int rank, const std::vector<int>& ranks) {
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }

  // The ranks of the job at these positions of the ring.
  std::vector<int> MembersAt(const std::vector<int>& positions) const {
    std::vector<int> members;
    members.reserve(positions.size());
    for (const int at : positions) members.push_back(ring_.members[static_cast<std::size_t>(at)]);
    return members;
  }

  // MakeShared, MakeTcp and MakeLevel make the group of `ranks`, which include this one; the group's keys in
  // the store begin with `key`. Errors and reports name the ranks by their numbers in the job.
  Result<std::unique_ptr<CollectiveGroup>> MakeShared(const std::string& key, const std::vector<int>& ranks,
                                                      Nanoseconds report_after) const {
    const std::string point = StrCat(key, "/meeting_point");
    if (ranks.front() == ring_.rank) {
      const auto now = std::chrono::system_clock::now().time_since_epoch().count();
      PENSTOCK_RETURN_IF_ERROR(store_.Set(point, StrCat(getpid(), "-", now, "/", ring_.number)));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::string meeting_point, store_.Get(point));
    return collective::MakeSharedMemoryGroup({.rank = PlaceOf(ring_.rank, ranks),
                                              .size = static_cast<int>(ranks.size()),
                                              .meeting_point = meeting_point,
                                              .report_after = report_after,
                                              .names = {MembersAt(ranks)},
                                              .trace_name = key});
  }

  Result<std::unique_ptr<CollectiveGroup>> MakeTcp(const std::string& key, const std::vector<int>& ranks,
                                                   Nanoseconds report_after) const {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string host, HostForOthers());
    return collective::MakeGlooGroup(
        {.rank = PlaceOf(ring_.rank, ranks),
         .size = static_cast<int>(ranks.size()),
         .address = host,
         .store = {
             .set = [&](const std::string& name,
                        std::string value) { return store_.Set(StrCat(key, "/", name), std::move(value)); },
             .get = [&](const std::string& name) { return store_.Get(StrCat(key, "/", name)); }},
         .report_after = report_after,
         .names = {MembersAt(ranks)},
         .trace_name = key});
  }

  Result<std::string> HostForOthers() const {
    const int member = ring_.members[static_cast<std::size_t>(ring_.rank)];
    const bool chosen =
        !environment_("PENSTOCK_IFNAME").empty() || !environment_("NCCL_SOCKET_IFNAME").empty();
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<rendezvous::Interface> all,
                              rendezvous::InterfacesOfThisMachine());
    if (chosen) return rendezvous::ChooseHost(all, environment_);
    PENSTOCK_ASSIGN_OR_RETURN(
        const std::string address,
        rendezvous::AddressOf(store_.addresses()[static_cast<std::size_t>(member)], all, environment_));
    return transport::HostOf(address);
  }

  // Uses shared memory if all of `ranks` are on one host, else connections.
  Result<std::unique_ptr<CollectiveGroup>> MakeLevel(const std::string& key, const std::vector<int>& ranks,
                                                     const Hosts& hosts) const {
    const bool one_host = std::ranges::any_of(hosts, [&](const std::vector<int>& host) {
      return std::ranges::all_of(ranks,
                                 [&](int rank) { return std::ranges::find(host, rank) != host.end(); });
    });
    return one_host ? MakeShared(key, ranks, report_after_) : MakeTcp(key, ranks, report_after_);
  }

  Result<std::unique_ptr<CollectiveGroup>> MakeHierarchical(const Hosts& groups, const Hosts& hosts) const {
    collective::Hierarchy parts{.rank = ring_.rank,
                                .hosts = groups,
                                .inner = nullptr,
                                .outer = nullptr,
                                .names = {ring_.members},
                                .trace_name = StrCat(key_, "/hosts")};
    std::vector<int> leaders;
    for (const std::vector<int>& group : groups) leaders.push_back(group.front());
    const std::vector<int>& own = OwnHost(groups);
    PENSTOCK_ASSIGN_OR_RETURN(parts.inner, MakeLevel(StrCat(key_, "/group_of/", own.front()), own, hosts));
    if (own.front() == ring_.rank) {
      PENSTOCK_ASSIGN_OR_RETURN(parts.outer, MakeLevel(StrCat(key_, "/leaders"), leaders, hosts));
    }
    return collective::MakeHierarchicalGroup(std::move(parts));
  }

  // The host, or group of a hierarchy, that contains this rank.
  const std::vector<int>& OwnHost(const Hosts& hosts) const {
    return *std::find_if(hosts.begin(), hosts.end(), [&](const std::vector<int>& host) {
      return std::find(host.begin(), host.end(), ring_.rank) != host.end();
    });
  }

  Result<int> FindGpu(const Hosts& hosts) const {
    PENSTOCK_ASSIGN_OR_RETURN(const collective::GpuApi* const api, collective::LoadGpuApi());
    PENSTOCK_ASSIGN_OR_RETURN(const int visible, collective::CountGpus(*api));
    return rendezvous::DeviceOfRank(environment_, PlaceOf(ring_.rank, OwnHost(hosts)), visible);
  }

  // If a rank has no GPU, all ranks fail with an error that names it.
  Result<std::unique_ptr<CollectiveGroup>> MakeNccl(const Hosts& hosts, const std::vector<int>& all) const {
    const Result<int> device = FindGpu(hosts);
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                              Gather("nccl", device.ok() ? "" : device.status().message()));
    for (int rank = 0; rank < size(); ++rank) {
      const std::string& word = words[static_cast<std::size_t>(rank)];
      if (!word.empty()) return Refuse(kVariable, " is nccl, but not for ", Who(rank), ": ", word);
    }
    const auto beside = [&](const char* name, Nanoseconds report_after) {
      const std::string key = StrCat(key_, "/nccl/", name);
      return hosts.size() == 1 ? MakeShared(key, all, report_after) : MakeTcp(key, all, report_after);
    };
    collective::NcclRendezvous parts{
        .device = *device, .report_after = report_after_, .trace_name = StrCat(key_, "/gpus")};
    PENSTOCK_ASSIGN_OR_RETURN(parts.agree, beside("agree", report_after_));
    PENSTOCK_ASSIGN_OR_RETURN(parts.watch, beside("watch", Nanoseconds(0)));
    PENSTOCK_ASSIGN_OR_RETURN(const collective::GpuApi* const api, collective::LoadGpuApi());
    return collective::MakeNcclGroup(*api, std::move(parts));
  }

#ifdef PENSTOCK_WITH_MPI
  // Exchanges the MPI rank of each rank.
  Result<std::unique_ptr<CollectiveGroup>> MakeMpi() const {
    const Result<collective::MpiPlace> place = collective::PlaceInMpi();
    const std::string own = place.ok() && place->size >= size() ? StrCat(place->rank) : "";
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> words, Gather("mpi", own));
    PENSTOCK_RETURN_IF_ERROR(place.status());
    collective::MpiRanks ranks{.ranks = {},
                               .number = ring_.number,
                               .report_after = report_after_,
                               .trace_name = StrCat(key_, "/mpi")};
    for (int rank = 0; rank < size(); ++rank) {
      const std::string& word = words[static_cast<std::size_t>(rank)];
      if (word.empty())
        return Refuse(kVariable, " is mpi, but no mpirun has started ", Who(rank), " with all others");
      ranks.ranks.push_back(std::atoi(word.c_str()));
    }
    return collective::MakeMpiGroup(ranks);
  }
#else
  Result<std::unique_ptr<CollectiveGroup>> MakeMpi() const {
    return Refuse(kVariable, " is mpi, but this build has no MPI (CMake's option PENSTOCK_MPI)");
  }
#endif

  rendezvous::Store& store_;
  const rendezvous::Ring& ring_;
  const rendezvous::Environment& environment_;
  const std::string key_;
  const Nanoseconds report_after_;
};

}  // namespace

Result<std::unique_ptr<CollectiveGroup>> MakeRingGroup(rendezvous::Store& store, const rendezvous::Ring& ring,
                                                       int group_ranks,
                                                       const rendezvous::Environment& environment) {
  PENSTOCK_ASSIGN_OR_RETURN(const Nanoseconds report_after, observe::ReportAfterFromEnvironment());
  return RingMaker(store, ring, environment, report_after).Make(group_ranks);
}

bool HasMpi() {
#ifdef PENSTOCK_WITH_MPI
  return true;
#else
  return false;
#endif
}

}  // namespace penstock::process
