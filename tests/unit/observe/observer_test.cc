#include "executor/observe/observer.h"

#include <gtest/gtest.h>

#include "executor/observe/receipt.h"
#include "executor/observe/report_times.h"
#include "executor/observe/wait.h"

namespace penstock::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ObserverTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Recorder recorder_{FlightMemory::Own(), clock_};
  Observer observer_{recorder_, clock_};
};

TEST_F(ObserverTest, CountsByPeer) {
  const PeerNotes a(&observer_, "pserver a:1"), b(&observer_, "pserver b:1");
  a.Sent(100);
  a.Sent(20);
  b.Received(7);
  b.Resent();
  const Counts now = observer_.Now();
  ASSERT_EQ(now.peers.size(), 2u);
  EXPECT_EQ(now.peers[0].counts.bytes_out, 120u);
  EXPECT_EQ(now.peers[0].counts.messages_out, 2u);
  EXPECT_EQ(now.peers[1].counts.bytes_in, 7u);
  EXPECT_EQ(now.Total().resent, 1u);
}

TEST_F(ObserverTest, CallsWithoutAnObserverAreIgnored) {
  const PeerNotes none(nullptr, "pserver a:1");
  none.Sent(100);
  none.Moved();
  none.Record(EventKind::kPushSent, 1, none.Name("w"));
  EXPECT_EQ(none.Name("w"), 0u);
}

TEST_F(ObserverTest, AWaitIsExposedTimeOfThePeerThatEndedIt) {
  const PeerNotes a(&observer_, "pserver a:1"), b(&observer_, "pserver b:1");
  {
    Wait wait(&observer_, clock_, 3, seconds(10));
    clock_.Advance(seconds(1));
    a.Moved();
    clock_.Advance(seconds(1));
    b.Moved();
  }
  const Counts now = observer_.Now();
  EXPECT_EQ(now.exposed, Nanoseconds(seconds(2)));
  EXPECT_EQ(now.peers[0].counts.waits, 0u);
  EXPECT_EQ(now.peers[1].counts.waited, Nanoseconds(seconds(2)));
  const std::vector<RecordedEvent> events = recorder_.Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EventKind::kWaitBegun);
  EXPECT_EQ(events[1].kind, EventKind::kWaitEnded);
}

TEST_F(ObserverTest, AWaitOfACommunicatorsThreadIsNotExposed) {
  const BackgroundThread trainer_goes_on;
  {
    const Wait wait(&observer_, clock_, 3, seconds(10));
    clock_.Advance(seconds(2));
  }
  EXPECT_EQ(observer_.Now().exposed, Nanoseconds(0));
  EXPECT_EQ(observer_.Now().in_background, Nanoseconds(seconds(2)));
}

TEST_F(ObserverTest, AWaitIsReportedEachTimeItHasDoubled) {
  Wait wait(nullptr, clock_, 0, seconds(10));
  EXPECT_EQ(wait.ToNextReport(), Nanoseconds(seconds(10)));
  clock_.Advance(seconds(10));
  wait.Reported();
  EXPECT_EQ(wait.ToNextReport(), Nanoseconds(seconds(10)));
  clock_.Advance(seconds(10));
  wait.Reported();
  EXPECT_EQ(wait.ToNextReport(), Nanoseconds(seconds(20)));
}

TEST(ReportTimes, AreReadFromTheEnvironment) {
  const auto read = [](const char* text) {
    setenv("PENSTOCK_REPORT_AFTER", text, 1);
    Result<Nanoseconds> after = ReportAfterFromEnvironment();
    unsetenv("PENSTOCK_REPORT_AFTER");
    return after;
  };
  EXPECT_EQ(*read("0.2"), Nanoseconds(milliseconds(200)));
  EXPECT_EQ(*read(""), kReportAfter);
  for (const char* bad : {"soon", "-1", "nan", "inf", "1e9", "0x1", "1s"}) {
    EXPECT_EQ(read(bad).status().ToString(),
              StrCat("the environment variable PENSTOCK_REPORT_AFTER is \"", bad,
                     "\"; it takes a number from 0.001 to 1e+06   [E-environment]"));
  }
  EXPECT_EQ(*ReportAfterFromEnvironment(), kReportAfter);
}

TEST_F(ObserverTest, StalenessIsCountedByUpdates) {
  for (const std::uint64_t versions : {0u, 1u, 1u, 40u}) observer_.CountStaleness(versions);
  const Counts now = observer_.Now();
  EXPECT_EQ(now.staleness[0], 1u);
  EXPECT_EQ(now.staleness[1], 2u);
  EXPECT_EQ(now.staleness[16], 1u);
  EXPECT_EQ(now.staleness_count(), 4u);
  EXPECT_EQ(now.staleness_sum, 42u);
}

TEST_F(ObserverTest, TheReceiptIsOneLine) {
  const PeerNotes a(&observer_, "pserver a:1");
  a.Sent(1'500'000);
  observer_.SetSteps(50);
  {
    const Wait wait(&observer_, clock_, 3, seconds(10));
    clock_.Advance(milliseconds(1250));
    a.Moved();
  }
  EXPECT_EQ(
      ReceiptLine(observer_.Now()),
      "receipt: 50 steps in 1.2 s, 1.5 MB sent, 0 B received, 1.25 s exposed; waited 1.25 s for pserver "
      "a:1");
}

TEST_F(ObserverTest, TheReceiptReportsBytesSavedByCompression) {
  const PeerNotes a(&observer_, "pserver a:1"), b(&observer_, "pserver b:1");
  a.Compressed(250, 4'000);
  b.Compressed(750, 12'000);
  EXPECT_NE(ReceiptLine(observer_.Now()).find("; compressed gradients took 1.0 kB, 16.0 kB as float32"),
            std::string::npos);
  const std::string json = ReceiptJson("trainer 0", observer_.Now());
  EXPECT_NE(json.find("\"compressed_bytes\": 1000, \"compressed_from_bytes\": 16000"), std::string::npos);
  const std::string text = Exposition("trainer 0", observer_.Now());
  EXPECT_NE(text.find("penstock_compressed_bytes_total{role=\"trainer 0\",peer=\"pserver a:1\"} 250\n"),
            std::string::npos)
      << text;
}

TEST_F(ObserverTest, TheReceiptOmitsUnusedCompression) {
  const PeerNotes a(&observer_, "pserver a:1");
  a.Sent(100);
  EXPECT_EQ(ReceiptLine(observer_.Now()).find("compressed"), std::string::npos);
}

TEST_F(ObserverTest, RowsOfTablesAreReportedOnceThereAreSome) {
  for (const std::string& text : {ReceiptLine(observer_.Now()), ReceiptJson("pserver 0", observer_.Now()),
                                  Exposition("pserver 0", observer_.Now())})
    EXPECT_EQ(text.find("rows"), std::string::npos) << text;
  observer_.CountRows({.entered = 5, .rejected = 7, .evicted = 1});
  observer_.CountRows({.entered = 4, .rejected = 0, .evicted = 2});
  const std::string line = ReceiptLine(observer_.Now()), json = ReceiptJson("pserver 0", observer_.Now()),
                    text = Exposition("pserver 0", observer_.Now());
  EXPECT_TRUE(line.ends_with(
      "; 9 rows of tables made, 3 evicted, 7 rows of gradients dropped before their ids entered"))
      << line;
  EXPECT_NE(json.find("\"rows_entered\": 9, \"rows_rejected\": 7, \"rows_evicted\": 3, "), std::string::npos);
  EXPECT_NE(text.find("penstock_rows_evicted_total{role=\"pserver 0\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("penstock_rows_rejected_total{role=\"pserver 0\"} 7\n"), std::string::npos);
}

TEST_F(ObserverTest, RowsOnDiskAreReportedOnceThereAreSome) {
  EXPECT_EQ(ReceiptLine(observer_.Now()).find("disk"), std::string::npos);
  observer_.CountColdRows({.hot = 9, .cold = 5, .file_bytes = 2000, .asked = 90, .fetched = 7, .written = 5});
  observer_.CountColdRows(
      {.hot = 0, .cold = std::uint64_t{0} - 2, .file_bytes = 0, .asked = 10, .fetched = 2});
  const std::string line = ReceiptLine(observer_.Now()), json = ReceiptJson("pserver 0", observer_.Now()),
                    text = Exposition("pserver 0", observer_.Now());
  EXPECT_TRUE(line.ends_with("; 9 rows in memory and 3 on disk in 2.0 kB, 9 of 100 ids read from disk"))
      << line;
  EXPECT_NE(json.find("\"rows_hot\": 9, \"rows_cold\": 3, \"rows_cold_bytes\": 2000, \"rows_asked\": 100, "
                      "\"rows_fetched\": 9, \"rows_spilled\": 5, "),
            std::string::npos)
      << json;
  EXPECT_NE(text.find("penstock_rows_cold{role=\"pserver 0\"} 3\n"), std::string::npos) << text;
}

TEST_F(ObserverTest, LookupsAheadAreReportedOnceThereAreSome) {
  EXPECT_EQ(ReceiptLine(observer_.Now()).find("ahead"), std::string::npos);
  observer_.CountLookupAhead(true, std::chrono::milliseconds(150));
  observer_.CountLookupAhead(true, std::chrono::milliseconds(100));
  observer_.CountLookupAhead(false, std::chrono::seconds(9));
  const std::string line = ReceiptLine(observer_.Now()), json = ReceiptJson("trainer 0", observer_.Now()),
                    text = Exposition("trainer 0", observer_.Now());
  EXPECT_TRUE(line.ends_with("; 2 lookups asked ahead, which hid 0.25 s, and 1 in vain")) << line;
  EXPECT_NE(json.find("\"lookups_ahead\": 2, \"lookups_ahead_unused\": 1, \"lookups_hidden_s\": 0.25, "),
            std::string::npos)
      << json;
  EXPECT_NE(text.find("penstock_lookups_hidden_seconds_total{role=\"trainer 0\"} 0.25\n"), std::string::npos);
}

TEST_F(ObserverTest, TheExpositionEscapesLabels) {
  const PeerNotes odd(&observer_, "p\"s\\e\nr");
  odd.Sent(5);
  const std::string text = Exposition("trainer 0", observer_.Now());
  EXPECT_NE(text.find("penstock_sent_bytes_total{role=\"trainer 0\",peer=\"p\\\"s\\\\e\\nr\"} 5\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace penstock::observe
