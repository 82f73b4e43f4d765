//! What units, titles and abbreviations are called.

/// A unit behind its number, which is one or not.
pub(super) fn unit_of(unit: &str, is_one: bool) -> String {
    let unit: String = unit.split_whitespace().collect();
    let (one, many) = match unit.as_str() {
        "%" => ("percent", "percent"),
        "°" => ("degree", "degrees"),
        "°C" => ("degree Celsius", "degrees Celsius"),
        "°F" => ("degree Fahrenheit", "degrees Fahrenheit"),
        "km/h" | "kph" => ("kilometer per hour", "kilometers per hour"),
        "m/s" => ("meter per second", "meters per second"),
        "mph" => ("mile per hour", "miles per hour"),
        "kbps" => ("kilobit per second", "kilobits per second"),
        "Mbps" => ("megabit per second", "megabits per second"),
        "Gbps" => ("gigabit per second", "gigabits per second"),
        "MB/s" => ("megabyte per second", "megabytes per second"),
        "GB/s" => ("gigabyte per second", "gigabytes per second"),
        "kWh" => ("kilowatt hour", "kilowatt hours"),
        "kW" => ("kilowatt", "kilowatts"),
        "MW" => ("megawatt", "megawatts"),
        "W" => ("watt", "watts"),
        "V" => ("volt", "volts"),
        "mAh" => ("milliamp hour", "milliamp hours"),
        "dB" => ("decibel", "decibels"),
        "Hz" => ("hertz", "hertz"),
        "kHz" => ("kilohertz", "kilohertz"),
        "MHz" => ("megahertz", "megahertz"),
        "GHz" => ("gigahertz", "gigahertz"),
        "km²" => ("square kilometer", "square kilometers"),
        "m²" | "m2" => ("square meter", "square meters"),
        "m³" => ("cubic meter", "cubic meters"),
        "km" => ("kilometer", "kilometers"),
        "m" => ("meter", "meters"),
        "cm" => ("centimeter", "centimeters"),
        "mm" => ("millimeter", "millimeters"),
        "kg" => ("kilogram", "kilograms"),
        "g" => ("gram", "grams"),
        "mg" => ("milligram", "milligrams"),
        "lb" | "lbs" => ("pound", "pounds"),
        "oz" => ("ounce", "ounces"),
        "l" | "L" => ("liter", "liters"),
        "ml" | "mL" => ("milliliter", "milliliters"),
        "kB" | "KB" => ("kilobyte", "kilobytes"),
        "MB" => ("megabyte", "megabytes"),
        "GB" => ("gigabyte", "gigabytes"),
        "TB" => ("terabyte", "terabytes"),
        "ft" => ("foot", "feet"),
        "yd" => ("yard", "yards"),
        "mi" => ("mile", "miles"),
        "min" | "mins" => ("minute", "minutes"),
        "hr" | "hrs" => ("hour", "hours"),
        "sec" | "secs" => ("second", "seconds"),
        "ms" => ("millisecond", "milliseconds"),
        "kcal" => ("kilocalorie", "kilocalories"),
        "cal" => ("calorie", "calories"),
        other => (other, other),
    };
    format!(" {}", if is_one { one } else { many })
}

/// A title in full.
pub(super) fn title(short: &str) -> &str {
    match short {
        "Mr" => "Mister",
        "Mrs" => "Missus",
        "Ms" => "Miz",
        "Dr" => "Doctor",
        "Prof" => "Professor",
        "Gen" => "General",
        "Sen" => "Senator",
        "Rep" => "Representative",
        "Capt" => "Captain",
        "Lt" => "Lieutenant",
        "Sgt" => "Sergeant",
        "Rev" => "Reverend",
        "Hon" => "Honorable",
        "Mt" => "Mount",
        other => other,
    }
}

/// A day of the week in full.
pub(super) fn weekday(short: &str) -> &str {
    let days = [
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let long = days.iter().find(|day| day.starts_with(&short[..3]));
    long.copied().unwrap_or(short)
}

/// An abbreviation in full.
pub(super) fn abbreviation(short: &str) -> &str {
    match short {
        "St" => "Street",
        "Ave" => "Avenue",
        "Blvd" => "Boulevard",
        "Rd" => "Road",
        "Jr" => "Junior",
        "Sr" => "Senior",
        "Inc" => "Incorporated",
        "Ltd" => "Limited",
        "Corp" => "Corporation",
        "Co" => "Company",
        "dept" | "Dept" => "department",
        "approx" => "approximately",
        "est" => "estimated",
        "min" => "minimum",
        "max" => "maximum",
        "vs" => "versus",
        "etc" => "et cetera",
        "misc" => "miscellaneous",
        "temp" => "temperature",
        "tel" => "telephone",
        "ext" => "extension",
        "fig" | "Fig" => "figure",
        "vol" | "Vol" => "volume",
        "incl" => "including",
        "excl" => "excluding",
        other => other,
    }
}
