//! The sections of a configuration. The comment of a field is the meaning of its key.

use crate::aggregate::Clip;
use crate::compress::{BudgetRule, LevelRule};
use crate::data::Scaling;
use crate::learn::model::Init;
use crate::learn::optimizer::StateMode;
use crate::learn::rate::RateSchedule;
use crate::parts::count::BatchSize;
use crate::parts::keys;
use crate::privacy::NoiseAt;
use crate::radio::access::slots::SlotKind;
use crate::radio::cell::pathloss::LineOfSight;
use crate::radio::{Combining, PayloadMode, Snrs};

/// `[data]`: the data set, and its partition.
#[keys(section = "data")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DataConfig {
    /// data set: a catalog name or a path
    #[key(default = "digits", allowed = "a known name, or the path of custom data")]
    pub dataset: String,
    /// how stored numbers become inputs
    #[key(
        default = Scaling::Unit,
        allowed = "\"unit\" (bytes / 255) | \"standard\" (mean 0, deviation 1) | \"none\""
    )]
    pub scaling: Scaling,
    /// how the training set is split among the devices
    #[key(default = "iid", part)]
    pub partition: String,
    /// M, the number of devices
    #[key(default = 40, range = "≥ 1", max = u32::MAX)]
    pub devices: u64,
    /// B, training samples on each device; their mean with quantity and free sizes; not used by shards
    #[key(default = 1000, range = "≥ 1 (at most the training set)", max = u32::MAX)]
    pub samples_per_device: u64,
    /// names of the groups of radio.group_sizes
    #[key(allowed = "a list of texts", unset_words = "group 1, group 2, …")]
    pub group_names: Option<Vec<String>>,
    /// labels that the devices of each group hold: a device draws its samples from all samples of these
    /// classes; an empty list, by data.partition
    #[key(
        allowed = "a list of labels for each group, such as [[], [0, 1, 2]]",
        unset_words = "by data.partition"
    )]
    pub group_classes: Option<Vec<Vec<u64>>>,
}

/// `[learn]`: model, local training, and aggregation.
#[keys(section = "learn")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LearnConfig {
    /// the model
    #[key(default = "mlp", part)]
    pub model: String,
    /// how weights start; biases start at zero
    #[key(
        default = Init::GlorotUniform,
        allowed = "\"glorot-uniform\" | \"glorot-normal\" | \"he-uniform\" | \"zeros\""
    )]
    pub init: Init,
    /// τ, local steps in a round
    #[key(default = 3, range = "1 ..= 1000000")]
    pub local_steps: u64,
    /// the fewest local steps of a device: each has its own number up to learn.local_steps, drawn once
    #[key(allowed = "1 ..= learn.local_steps", unset_words = "all devices take learn.local_steps")]
    pub local_steps_min: Option<u64>,
    /// samples in a mini-batch
    #[key(default = BatchSize::Count(64), allowed = "≥ 1, or \"full\" for all samples of the device")]
    pub batch: BatchSize,
    /// the local optimizer
    #[key(default = "adam", part)]
    pub optimizer: String,
    /// η, the local learning rate
    #[key(range = "> 0", unset_words = "sgd 0.1, adam 1e-3, adagrad 0.2")]
    pub rate: Option<f64>,
    /// how the local rate changes over the rounds
    #[key(allowed = "\"constant\" | \"step(rounds, factor)\" | \"inverse(rounds)\" | \"cosine\" | \
                   \"warmup(rounds)\", which may stand before another")]
    pub rate_schedule: RateSchedule,
    /// λ, decoupled weight decay: θ is multiplied by 1 − ηλ before each local step
    #[key(range = "≥ 0 (below 1/η)")]
    pub weight_decay: f64,
    /// G, the norm to which the gradient of each local step is clipped
    #[key(range = "≥ 0 (0: not clipped)")]
    pub gradient_clip: f64,
    /// the local optimizer's state from round to round
    #[key(default = StateMode::Keep, allowed = "\"keep\" | \"reset\"")]
    pub state: StateMode,
    /// what is added to local gradients against devices that drift apart
    #[key(default = "none", part)]
    pub correction: String,
    /// how the updates of a round become one step
    #[key(default = "mean", part)]
    pub aggregate: String,
    /// what the server does with that step
    #[key(default = "sgd", part)]
    pub server_optimizer: String,
    /// c, the server's rate
    #[key(default = 1.0, range = "> 0")]
    pub server_rate: f64,
    /// how the server's rate changes over the rounds
    #[key(allowed = "as learn.rate_schedule")]
    pub server_rate_schedule: RateSchedule,
}

/// `[radio]`: the uplink.
#[keys(section = "radio")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RadioConfig {
    /// the fading law
    #[key(default = "rayleigh", part)]
    pub fading: String,
    /// receive antennas of the server; gains add up
    #[key(default = 1, range = "1 ..= 1024")]
    pub antennas: u64,
    /// ρ, correlation of the fading amplitude from one round to the next (Gauss–Markov); 0: independent
    #[key(range = "> -1 and < 1")]
    pub correlation: f64,
    /// speed of the devices: fading in time by Clarke's model; needs radio.carrier_hz and radio.period_s
    #[key(range = "≥ 0 (0: independent rounds)")]
    pub speed_kmh: f64,
    /// seconds from one round to the next, as the fading counts them
    #[key(range = "> 0")]
    pub period_s: Option<f64>,
    /// delay profile of the channel, which makes resource blocks fade apart
    #[key(
        default = "flat",
        allowed = "\"flat\" | \"tdl-a30\" | \"tdl-b100\" | \"tdl-c300\" | \"exponential\""
    )]
    pub profile: String,
    /// rms delay spread of radio.profile = "exponential"
    #[key(range = "> 0")]
    pub delay_spread_s: Option<f64>,
    /// file of the mean power gain of each device, M numbers ≥ 0 separated by white space or commas; fading
    /// multiplies them
    #[key(allowed = "a path; \"\": 1 for all", file)]
    pub mean_gains: String,
    /// mean SNR of a device while it sends, dB, the same for every K; a list makes as many groups of
    /// devices
    #[key(allowed = "a number, or a list such as [20, 0]", unset_words = "by radio.power and radio.noise")]
    pub snr_db: Option<Snrs>,
    /// bandwidth at which radio.snr_db holds: at another radio.bandwidth_hz the noise differs, and so the
    /// SNR. An experiment that changes or sweeps the bandwidth of its file takes that of the file
    #[key(range = "> 0", unset_words = "radio.bandwidth_hz")]
    pub snr_bandwidth_hz: Option<f64>,
    /// transmit power at which radio.snr_db holds, dBm; an experiment that changes or sweeps the power of its
    /// file takes that of the file
    #[key(range = "-400 ..= 400", unset_words = "radio.power_dbm")]
    pub snr_power_dbm: Option<f64>,
    /// how many devices each group has, from device 0 on; docs/radio.md has a short form for groups
    #[key(allowed = "a list that adds up to data.devices", unset_words = "groups of one size")]
    pub group_sizes: Option<Vec<u64>>,
    /// ε, error of the channel estimates as a share of the scatter's power: h = ĥ + e, e ~ CN(0, ε), and e ~
    /// CN(0, ε/(K+1)) beside a line of sight of K-factor K
    #[key(range = "≥ 0 and < 1")]
    pub csi_error: f64,
    /// age of the channel estimates; needs radio.speed_kmh
    #[key(range = "≥ 0")]
    pub csi_delay_s: f64,
    /// how far below the estimated SNR a rate is chosen, dB, so that an estimate that is too good still
    /// holds
    #[key(range = "≥ 0")]
    pub backoff_db: f64,
    /// what is fixed: the symbols of a round, and bits vary; or the bits of an upload, and time varies
    #[key(default = PayloadMode::Airtime, allowed = "\"airtime\" | \"payload\"")]
    pub mode: PayloadMode,
    /// bits of an upload if radio.mode = "payload"
    #[key(range = "> 0", unset_words = "32·d")]
    pub payload_bits: Option<f64>,
    /// n, channel symbols in a round, shared by the scheduled devices
    #[key(default = 5000, range = "≥ 1", max = 1u64 << 53)]
    pub symbols: u64,
    /// P̄, average transmit power of a device. By radio.power_policy = "fair-share" a scheduled one sends
    /// with M·P̄/K, so its SNR depends on K; radio.snr_db sets the SNR for every K
    #[key(default = 1.0, range = "> 0")]
    pub power: f64,
    /// the largest transmit power, in the unit of radio.power
    #[key(range = "> 0", unset_words = "no limit")]
    pub power_max: Option<f64>,
    /// σ², noise variance
    #[key(default = 1.0, range = "> 0")]
    pub noise: f64,
    /// W, bandwidth: makes the radio physical (watts, seconds, joules), with n = W·uplink_s·(1 − overhead)
    #[key(range = "> 0", unset_words = "a radio without units (radio.symbols, radio.power, radio.noise)")]
    pub bandwidth_hz: Option<f64>,
    /// seconds of a round's uplink
    #[key(range = "> 0", unset = 0.005)]
    pub uplink_s: Option<f64>,
    /// P̄, average transmit power of a device, dBm
    #[key(range = "-400 ..= 400", unset = 7.8)]
    pub power_dbm: Option<f64>,
    /// the largest transmit power of a device, dBm
    #[key(range = "-400 ..= 400", unset = 23.0)]
    pub power_max_dbm: Option<f64>,
    /// noise density, dBm/Hz
    #[key(range = "-400 ..= 400", unset = -174.0)]
    pub noise_dbm_hz: Option<f64>,
    /// noise figure of the server, dB
    #[key(range = "≥ 0", unset = 5.0)]
    pub noise_figure_db: Option<f64>,
    /// power of the interference at the server, watts
    #[key(range = "≥ 0", unset = 0.0)]
    pub interference_w: Option<f64>,
    /// share of the symbols that pilots and control take
    #[key(range = "≥ 0 and < 1", unset = 0.0)]
    pub overhead: Option<f64>,
    /// carrier frequency
    #[key(range = "> 0", unset = 2e9)]
    pub carrier_hz: Option<f64>,
    /// antenna gain of a device, dBi
    #[key(range = "-400 ..= 400", unset = 0.0)]
    pub gain_tx_dbi: Option<f64>,
    /// antenna gain of the server, dBi
    #[key(range = "-400 ..= 400", unset = 0.0)]
    pub gain_rx_dbi: Option<f64>,
    /// what a scheduled device sends with
    #[key(default = "fair-share", part)]
    pub power_policy: String,
    /// bits that a number of symbols carry at an SNR
    #[key(default = "shannon", part)]
    pub rate: String,
    /// how often an upload is sent until it arrives, within its symbols
    #[key(default = 1, range = "1 ..= 100")]
    pub attempts: u64,
    /// what becomes of transmissions that were not decoded, where radio.attempts is above 1
    #[key(
        default = Combining::None,
        allowed = "\"none\" | \"chase\" (SNRs add up) | \"incremental-redundancy\" (bits add up)"
    )]
    pub combining: Combining,
    /// waterfall threshold m: an upload is lost with probability 1 − exp(−m·σ²/(P·β)), whatever its rate
    #[key(range = "-400 ..= 400", unset_words = "no such loss")]
    pub loss_threshold_db: Option<f64>,
    /// capacity below which a device does not report and cannot be scheduled, bits a symbol
    #[key(range = "> 0", unset = 0.1)]
    pub report_floor: Option<f64>,
    /// how the scheduled devices share the band
    #[key(default = "tdma", part)]
    pub access: String,
    /// whether shares of symbols are real or whole numbers
    #[key(default = SlotKind::Real, allowed = "\"real\" | \"whole\"")]
    pub slots: SlotKind,
    /// whether scheduled devices encode their updates to bytes and the server decodes them; the result is
    /// the same
    pub wire: bool,
}

/// `[cell]`: positions and mean gains of the devices.
#[keys(section = "cell")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CellConfig {
    /// where the devices are, the server being at the origin
    #[key(default = "none", part)]
    pub layout: String,
    /// radius of the cell (half the side of a square), m
    #[key(range = "> 0", unset = 500.0)]
    pub radius_m: Option<f64>,
    /// smallest distance of a device to the server, m
    #[key(range = "≥ 0", unset_words = "the nearest distance of the path loss law, at most half the radius")]
    pub min_m: Option<f64>,
    /// the law of path loss
    #[key(default = "none", part)]
    pub pathloss: String,
    /// height of the server's antenna, m
    #[key(range = "> 0", unset_words = "the height of the law")]
    pub height_bs_m: Option<f64>,
    /// height of a device, m
    #[key(range = "> 0", unset_words = "1.5")]
    pub height_ut_m: Option<f64>,
    /// which devices are in line of sight, for laws that ask
    #[key(allowed = "\"drawn\" (by distance) | \"always\" | \"never\"", unset_words = "\"drawn\"")]
    pub los: Option<LineOfSight>,
    /// whether a law of path loss may be used outside of its domain
    pub extrapolate: bool,
    /// standard deviation of the shadowing, dB; its mean is 0 dB, not 1
    #[key(range = "≥ 0")]
    pub shadowing_db: f64,
    /// distance at which shadowing is correlated by 1/e; 0: independent over devices
    #[key(range = "≥ 0")]
    pub correlation_m: f64,
    /// whether devices move, each in its direction with radio.speed_kmh
    pub drift: bool,
}

/// `[clock]`: the seconds of a round.
#[keys(section = "clock")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClockConfig {
    /// how long local training takes
    #[key(default = "none", part)]
    pub compute: String,
    /// how training times differ between devices
    #[key(default = "equal", part)]
    pub spread: String,
    /// how training times differ from round to round
    #[key(default = "steady", part)]
    pub jitter: String,
    /// how the model reaches the devices
    #[key(default = "ideal", part)]
    pub downlink: String,
    /// bits of each number that a candidate reports before selection
    #[key(range = "≥ 0 (0: free)")]
    pub report_bits: f64,
    /// bits a symbol of the channel that carries reports, one after another
    #[key(range = "> 0", unset = 0.1523)]
    pub report_efficiency: Option<f64>,
    /// seconds after which a round ends: who cannot have sent by then has trained for nothing
    #[key(range = "> 0", unset_words = "none")]
    pub deadline_s: Option<f64>,
    /// whether devices send as soon as they have trained; for policies that ask no report, with TDMA
    pub pipeline: bool,
    /// speed at which the devices of each group train, relative to clock.compute
    #[key(allowed = "a list with a number > 0 for each group", unset_words = "1 for all")]
    pub group_speeds: Option<Vec<f64>>,
}

/// `[energy]`: the power that a device draws from its battery.
#[keys(section = "energy")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EnergyConfig {
    /// watts of a device while it trains
    #[key(range = "0 ..= 1e30", unset = 0.8)]
    pub compute_w: Option<f64>,
    /// κ of clock.compute = "cycles": joules are κ·cycles·f²
    #[key(range = "0 ..= 1e30", unset = 1e-28)]
    pub kappa: Option<f64>,
    /// watts of a device's circuits while it sends, besides what it radiates
    #[key(range = "0 ..= 1e30")]
    pub circuit_w: f64,
    /// share of the power amplifier's input that is radiated
    #[key(default = 1.0, range = "> 0 and ≤ 1")]
    pub pa_efficiency: f64,
    /// watts of a device while it receives the model
    #[key(range = "0 ..= 1e30")]
    pub receive_w: f64,
    /// watts of a device while it waits
    #[key(range = "0 ..= 1e30")]
    pub idle_w: f64,
    /// joules in a device's battery; a device that cannot pay a round is left out
    #[key(range = "≥ 0 (0: no end)")]
    pub battery_j: f64,
    /// joules in the battery of a device of each group
    #[key(
        allowed = "a list with a number ≥ 0 for each group (0: on mains)",
        unset_words = "by energy.battery_j"
    )]
    pub group_battery_j: Option<Vec<f64>>,
}

/// `[schedule]`: the choice of devices.
#[keys(section = "schedule")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScheduleConfig {
    /// who sends
    #[key(default = "bn2-c", part)]
    pub policy: String,
    /// K, the largest number of devices scheduled in a round
    #[key(default = 1, range = "≥ 1 (at most data.devices)")]
    pub k: u64,
    /// β, by which K falls: in round t (from 0) at most K_t = max(K_min, ⌈K·e^(−β·t)⌉) are scheduled, by
    /// any policy, with the power of a run with K_t
    #[key(range = "≥ 0 (0: K stays)")]
    pub decay: f64,
    /// K_min, below which schedule.decay does not take K
    #[key(default = 1, range = "≥ 1 (at most schedule.k)")]
    pub k_min: u64,
    /// bits of each number that a candidate reports before selection, sent over its own link in symbols of
    /// the round
    #[key(allowed = "0 (free) | 8 (logarithmic, steps of 9 %) | 16 (half precision) | 32")]
    pub report_bits: u64,
}

/// `[compress]`: how an update is squeezed into its bits.
#[keys(section = "compress")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompressConfig {
    /// how an update is compressed
    #[key(default = "d-sgd", part)]
    pub scheme: String,
    /// what a device keeps of an update that was not sent in full
    #[key(default = "off", part)]
    pub feedback: String,
    /// what must fit into a device's bits: the scheme's count, or the encoded payload, to the bit
    #[key(
        default = BudgetRule::Formula,
        allowed = "\"formula\" | \"wire\" (the highest level not above the formula's whose payload fits)"
    )]
    pub budget: BudgetRule,
    /// which of the levels that fit is sent; only where all kept entries have one value (d-sgd, stc)
    #[key(
        default = LevelRule::Largest,
        allowed = "\"largest\" | \"best\" (the most energy: entries below about half of the mean are left \
                   out)"
    )]
    pub level: LevelRule,
}

/// `[adversary]`: devices that do not play by the rules.
#[keys(section = "adversary")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdversaryConfig {
    /// share of the devices that are adversarial, the same in every round
    #[key(range = "0 ..= 1")]
    pub share: f64,
    /// what an adversarial device does; garbage, stolen and replay act on bytes and need radio.wire = true
    #[key(default = "inflated-norm", part)]
    pub kind: String,
}

/// `[defense]`: the server's measures against them.
#[keys(section = "defense")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DefenseConfig {
    /// whether uploads that contradict the device's report are dropped, and devices excluded that do it
    /// again
    pub audit: bool,
    /// uploads that the audit drops until it excludes the device
    #[key(default = 3, range = "≥ 1", max = u32::MAX)]
    pub strikes: u64,
    /// the norm to which updates are clipped
    #[key(
        default = Clip::Off,
        allowed = "\"off\" | a norm > 0 | \"median\" (of the latest 101 that arrived)"
    )]
    pub clip: Clip,
    /// whether no device is scheduled in more than its share K/M of the rounds, so that none spends more
    /// than P̄
    pub participation_cap: bool,
    /// transmissions that a device may be ahead of that share before the end
    #[key(default = 1, range = "≥ 1", max = u32::MAX)]
    pub cap_slack: u64,
}

/// `[privacy]`: noise on the sum of the updates.
#[keys(section = "privacy")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrivacyConfig {
    /// z: noise of deviation z·S is added to every entry of the sum of the updates, S being defense.clip;
    /// 0: none
    #[key(range = "≥ 0")]
    pub noise: f64,
    /// δ, at which ε is given
    #[key(default = 1e-5, range = "> 0 and < 1")]
    pub delta: f64,
    /// where noise is added
    #[key(default = NoiseAt::Server, allowed = "\"server\"")]
    pub at: NoiseAt,
}

/// `[run]`: rounds, evaluation interval, seeds.
#[keys(section = "run")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunConfig {
    /// T, rounds to run
    #[key(default = 500, range = "≥ 1", max = u32::MAX)]
    pub rounds: u64,
    /// rounds between evaluations; the last round is always evaluated
    #[key(default = 10, range = "≥ 1", max = u32::MAX)]
    pub evaluate_every: u64,
    /// the first seed
    #[key(range = "≥ 0")]
    pub seed: u64,
    /// how many seeds, counted up from run.seed
    #[key(default = 1, range = "1 ..= 1000000")]
    pub seeds: u64,
    /// the test accuracy that tables and claims count rounds and bits to; it changes no run
    #[key(default = 0.8, range = "> 0 and < 1")]
    pub target: f64,
    /// whether evaluations record the accuracy of each class, of the worst class and of the worst tenth of
    /// the devices, and how evenly devices are scheduled
    pub fairness: bool,
}
