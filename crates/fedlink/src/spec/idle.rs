//! Keys of parts of the radio, the cell and the clock that are not chosen.

use super::{Config, ConfigError, kinds};
use toml::Value;

/// The sections in which a key without effect is refused.
const SECTIONS: [&str; 3] = ["radio", "cell", "clock"];

impl Config {
    /// Whether `key` has an effect on the choice of parts that the configuration makes: it is no key of a
    /// part, or one of a chosen part, built-in or custom.
    ///
    /// ```
    /// let config = fedlink::spec::Config::from_toml("[schedule]\npolicy = \"bc-bn2\"").unwrap();
    /// assert!(config.chooses("schedule.k") && config.chooses("schedule.bc-bn2.kc"));
    /// assert!(!config.chooses("schedule.oort.window"));
    /// ```
    pub fn chooses(&self, key: &str) -> bool {
        let Some((table, name)) = key.rsplit_once('.').and_then(|(part, _)| part.rsplit_once('.')) else {
            return true;
        };
        let chosen = || kinds().iter().zip(self.chosen_names()).filter(|(kind, _)| kind.table == table);
        chosen().next().is_none() || chosen().any(|(_, chosen)| chosen == name)
    }

    /// Removes the own tables of parts that are not chosen.
    pub fn drop_idle_tables(&mut self) {
        let mut own = std::mem::take(&mut self.own);
        own.retain(|path, _| self.chooses(&format!("{path}.any")));
        self.own = own;
    }

    /// The keys in own tables of `[radio]`, `[cell]` and `[clock]` whose parts are not chosen, each as the
    /// error that it is unless another curve of an experiment chooses the part.
    ///
    /// ```
    /// use fedlink::spec::Config;
    /// let mut config = Config::from_toml("[radio.rician]\nk_factor = 4.0").unwrap();
    /// let error = config.idle_keys()[0].to_string();
    /// let start = "radio.rician.k_factor: has no effect here: it is for radio.fading = \"rician\"";
    /// assert!(error.starts_with(start), "{error}");
    /// config.set("radio.fading", "rician").unwrap();
    /// assert!(config.idle_keys().is_empty());
    /// ```
    pub fn idle_keys(&self) -> Vec<ConfigError> {
        if self.own.is_empty() {
            return Vec::new();
        }
        let table = self.to_table();
        let chosen = |key: &str| {
            let (section, name) = key.split_once('.')?;
            table.get(section)?.get(name).and_then(Value::as_str)
        };
        let mut idle = Vec::new();
        for kind in kinds().iter().filter(|kind| SECTIONS.contains(&kind.table)) {
            for part in kind.parts.iter().filter(|part| chosen(kind.key) != Some(part.name)) {
                for own in self.own_table(kind.table, part.name).keys() {
                    let key = format!("{}.{}.{own}", kind.table, part.name);
                    let problem = format!(
                        "has no effect here: it is for {} = \"{}\"; set that, or leave it out",
                        kind.key, part.name
                    );
                    idle.push(ConfigError::new(key, problem));
                }
            }
        }
        idle
    }
}
