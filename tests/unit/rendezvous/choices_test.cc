// The interface and the devices that the environment selects.
#include <gtest/gtest.h>

#include <map>

#include "executor/collective/rendezvous/devices.h"
#include "executor/collective/rendezvous/interface.h"

namespace penstock::rendezvous {
namespace {

using Variables = std::map<std::string, std::string>;

Environment Of(const Variables& variables) {
  return [variables](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::string() : at->second;
  };
}

const std::vector<Interface> kMachine = {{"lo", "127.0.0.1", true}, {"docker0", "172.17.0.1"},
                                         {"eth0", "10.0.0.2"},      {"eth1", "10.0.1.2"},
                                         {"ib0", "10.1.0.2"},       {"ib01", "fd00::2"}};

std::string HostBy(const Variables& variables, std::span<const Interface> interfaces = kMachine) {
  const Result<std::string> host = ChooseHost(interfaces, Of(variables));
  return host.ok() ? *host : host.status().ToString();
}

TEST(ChooseHost, LoopbackAndDockerAreTheLastDefault) {
  EXPECT_EQ(HostBy({}), "10.0.0.2");
  EXPECT_EQ(HostBy({}, std::span(kMachine).first(1)), "127.0.0.1");
  EXPECT_EQ(HostBy({}, {}), "no network interface is up   [E-rendezvous-interface]");
}

TEST(ChooseHost, ListsContainPrefixesNamesOrExclusions) {
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "ib"}}), "10.1.0.2");
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "wlan, eth1"}}), "10.0.1.2");
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "=ib01"}}), "fd00::2");
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "^lo,docker,eth"}}), "10.1.0.2");
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "^=lo,docker0,eth0"}}), "10.0.1.2");
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "lo"}}), "127.0.0.1") << "what is named is taken";
}

TEST(ChooseHost, PenstocksVariablePrecedesNccls) {
  EXPECT_EQ(HostBy({{"NCCL_SOCKET_IFNAME", "ib"}, {"PENSTOCK_IFNAME", "eth"}}), "10.0.0.2");
}

TEST(ChooseHost, AListWithoutMatchReportsTheInterfaces) {
  EXPECT_EQ(
      HostBy({{"PENSTOCK_IFNAME", "=eth"}}, std::span(kMachine).first(3)),
      "PENSTOCK_IFNAME==eth fits no network interface; there is lo (127.0.0.1), docker0 (172.17.0.1), eth0 "
      "(10.0.0.2)   [E-rendezvous-interface]");
}

TEST(AddressOf, KeepsTheHostOfAnEndpoint) {
  const auto address = [](const std::string& endpoint, const Variables& variables) {
    return AddressOf(endpoint, kMachine, Of(variables)).value();
  };
  EXPECT_EQ(address("ps0:6170", {}), "ps0:6170");
  EXPECT_EQ(address(":6170", {}), "10.0.0.2:6170");
  EXPECT_EQ(address("0.0.0.0:6170", {{"PENSTOCK_IFNAME", "ib01"}}), "[fd00::2]:6170");
  EXPECT_EQ(address("[::]:6170", {{"PENSTOCK_IFNAME", "eth1"}}), "10.0.1.2:6170");
  EXPECT_EQ(AddressOf("6170", kMachine, Of({})).status().id(), "E-rendezvous-facts");
}

TEST(Interfaces, HaveNamesAndAddresses) {
  const Result<std::vector<Interface>> all = InterfacesOfThisMachine();
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  for (const Interface& interface : *all) {
    EXPECT_FALSE(interface.name.empty());
    EXPECT_FALSE(interface.address.empty());
  }
}

// "0=GPU-a, 1=GPU-b"
std::string DevicesBy(const Variables& variables) {
  const auto devices = ChooseDevices(Of(variables));
  if (!devices.ok()) return devices.status().ToString();
  if (!devices->has_value()) return "any";
  std::vector<std::string> texts;
  for (const ChosenDevice& device : **devices) texts.push_back(StrCat(device.ordinal, "=", device.named));
  return Join(texts, ", ");
}

TEST(ChooseDevices, SelectionIndexesTheVisibleDevices) {
  EXPECT_EQ(DevicesBy({}), "any");
  EXPECT_EQ(DevicesBy({{"FLAGS_selected_gpus", "3"}}), "3=3");
  EXPECT_EQ(DevicesBy({{"CUDA_VISIBLE_DEVICES", "4, GPU-b"}}), "0=4, 1=GPU-b");
  EXPECT_EQ(DevicesBy({{"CUDA_VISIBLE_DEVICES", "4,5,6"}, {"FLAGS_selected_gpus", "2, 0"}}), "2=6, 0=4");
  EXPECT_EQ(DevicesBy({{"CUDA_VISIBLE_DEVICES", "4,-1,6"}}), "0=4");
  EXPECT_EQ(DevicesBy({{"CUDA_VISIBLE_DEVICES", "-1"}}), "");
}

TEST(ChooseDevices, InvisibleDevicesAreRefused) {
  EXPECT_EQ(DevicesBy({{"CUDA_VISIBLE_DEVICES", "4,5"}, {"FLAGS_selected_gpus", "4"}}),
            "FLAGS_selected_gpus=4: device 4 is out of range; CUDA_VISIBLE_DEVICES=4,5 shows 2"
            "   [E-rendezvous-device]");
  EXPECT_EQ(DevicesBy({{"FLAGS_selected_gpus", "0,one"}}),
            "FLAGS_selected_gpus=0,one: \"one\" is no device's number   [E-rendezvous-device]");
  EXPECT_EQ(DevicesBy({{"FLAGS_selected_gpus", "0,-1"}}),
            "FLAGS_selected_gpus=0,-1: \"-1\" is no device's number   [E-rendezvous-device]");
  EXPECT_EQ(DevicesBy({{"FLAGS_selected_gpus", "1,1"}}),
            "FLAGS_selected_gpus=1,1: device 1 is listed twice   [E-rendezvous-device]");
}

std::string DeviceBy(const Variables& variables, int place, int visible) {
  const Result<int> device = DeviceOfRank(Of(variables), place, visible);
  return device.ok() ? StrCat(*device) : device.status().ToString();
}

TEST(DeviceOfRank, IsReadFromTheEnvironment) {
  EXPECT_EQ(DeviceBy({{"FLAGS_selected_gpus", "3"}}, 1, 4), "3");
  EXPECT_EQ(DeviceBy({{"CUDA_VISIBLE_DEVICES", "7"}}, 1, 1), "0");
  EXPECT_EQ(DeviceBy({{"CUDA_VISIBLE_DEVICES", "4,5"}, {"FLAGS_selected_gpus", "1"}}, 0, 2), "1");
}

TEST(DeviceOfRank, IsIndexedByTheLocalRank) {
  EXPECT_EQ(DeviceBy({}, 2, 4), "2");
  EXPECT_EQ(DeviceBy({{"CUDA_VISIBLE_DEVICES", "4,5"}}, 1, 2), "1");
  EXPECT_EQ(DeviceBy({{"FLAGS_selected_gpus", "3,1"}}, 1, 4), "1");
}

TEST(DeviceOfRank, ReportsMissingDevices) {
  EXPECT_EQ(DeviceBy({}, 1, 1), "rank 1 of this host has no device: there are 1   [E-rendezvous-device]");
  EXPECT_EQ(DeviceBy({{"CUDA_VISIBLE_DEVICES", "-1"}}, 0, 0),
            "rank 0 of this host has no device: there are 0   [E-rendezvous-device]");
  EXPECT_EQ(DeviceBy({{"FLAGS_selected_gpus", "2"}}, 0, 2),
            "device 2 is chosen; this process sees 2   [E-rendezvous-device]");
  EXPECT_EQ(DeviceBy({{"FLAGS_selected_gpus", "x"}}, 0, 2),
            "FLAGS_selected_gpus=x: \"x\" is no device's number   [E-rendezvous-device]");
}

}  // namespace
}  // namespace penstock::rendezvous
